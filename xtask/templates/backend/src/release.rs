use leasehold_core::{GrantRef, LeaseStatus, Result};

use crate::store::Store;

/// Frees a key, if the owner of the grant still holds it.
///
/// One atomic step: if the entry has `grant.owner`, and its lease has not ended, take the owner away, leave the epoch as it is,
/// and answer [`LeaseStatus::Held`]. Else change nothing and answer [`LeaseStatus::NotHeld`]; but with compare-and-swap, write the entry
/// as it is, so that a claim of this owner that is still under way fails. An entry that is deleted forgets its epoch: then the epoch of
/// the next grant has to begin a millisecond ahead of the clock, as `next_epoch(None, clock)` does.
pub(crate) async fn release(store: &Store, grant: &GrantRef) -> Result<LeaseStatus> {
    store.not_written("release", grant.key.as_str()).await
}
