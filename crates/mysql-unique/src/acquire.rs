use leasehold_core::{Attempt, Claim, Result};

use crate::store::Store;

/// Takes a key for the owner of `claim`, or answers for how long the lease in the way lasts.
pub(crate) async fn try_acquire(store: &Store, claim: &Claim) -> Result<Attempt> {
    let Some(queue) = &store.advisory_queue else { return ask_row(store, claim).await };
    if let Some(time) = queue.defer(claim) {
        return Ok(Attempt::Busy { retry_in: Some(time) });
    }
    let attempt = ask_row(store, claim).await?;
    queue.claimed(claim, attempt);
    Ok(attempt)
}

async fn ask_row(store: &Store, claim: &Claim) -> Result<Attempt> {
    store.claims.run((store.namespace.name_of(&claim.key), claim.clone())).await
}
