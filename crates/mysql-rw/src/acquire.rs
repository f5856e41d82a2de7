use leasehold_core::{Attempt, Claim, Mode, Result};

use crate::readers::try_acquire_reader;
use crate::store::Store;

/// Takes a key for the owner of `claim`, as the writer or as a reader, or answers that somebody is in the way.
pub(crate) async fn try_acquire(store: &Store, claim: &Claim) -> Result<Attempt> {
    match claim.mode {
        Mode::Exclusive => try_acquire_writer(store, claim).await,
        Mode::Shared => try_acquire_reader(store, claim).await,
    }
}

async fn try_acquire_writer(store: &Store, claim: &Claim) -> Result<Attempt> {
    let name = store.namespace.name_of(&claim.key);
    let request = (name.clone(), claim.clone());
    let is_poll = store.busy.has(&name);
    let attempt = if is_poll { store.claims.alone(request).await } else { store.claims.run(request).await };
    store.busy.note(&name, &attempt);
    attempt
}
