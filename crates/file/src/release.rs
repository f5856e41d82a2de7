use leasehold_core::{GrantRef, LeaseStatus, Result};

use crate::store::Store;

/// Frees a grant. Whatever the answer is, also an error, this process does not hold the grant afterwards.
pub(crate) fn release(store: &Store, grant: &GrantRef) -> Result<LeaseStatus> {
    let mut held = store.held();
    if held.get(&grant.owner).is_none_or(|ours| ours.key != grant.key) {
        return Ok(LeaseStatus::NotHeld);
    }
    let Some(ours) = held.remove(&grant.owner) else { return Ok(LeaseStatus::NotHeld) };
    drop(held);
    let status = ours.status();
    if !matches!(status, Ok(LeaseStatus::NotHeld | LeaseStatus::ForceReleased)) {
        ours.free(&store.idle);
    }
    status
}
