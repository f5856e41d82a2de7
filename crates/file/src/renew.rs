use leasehold_core::{GrantRef, LeaseStatus, Renewal, Result};

use crate::store::Store;

/// Answers for each grant whether this process still holds it. There is no lease to prolong, but a lock file can be
/// replaced or removed.
pub(crate) fn renew(store: &Store, renewals: &[Renewal]) -> Vec<Result<LeaseStatus>> {
    // If the session's file cannot be restored, only `inspect` and `list` are wrong.
    let _ = store.sessions.restore_file();
    renewals.iter().map(|renewal| check(store, &renewal.grant)).collect()
}

/// Answers whether this process still holds the grant, and forgets the grant if not.
fn check(store: &Store, grant: &GrantRef) -> Result<LeaseStatus> {
    let mut held = store.held();
    let Some(ours) = held.get(&grant.owner).filter(|ours| ours.key == grant.key) else {
        return Ok(LeaseStatus::NotHeld);
    };
    let status = ours.status()?;
    if status != LeaseStatus::Held {
        held.remove(&grant.owner);
    }
    Ok(status)
}
