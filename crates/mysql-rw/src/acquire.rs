use leasehold_core::{Attempt, Claim, Mode, Result};

use crate::readers::try_acquire_reader;
use crate::store::Store;

/// Takes a key for the owner of `claim`, as the writer or as a reader, or answers that somebody is in the way.
pub(crate) async fn try_acquire(store: &Store, claim: &Claim) -> Result<Attempt> {
    match claim.mode {
        Mode::Exclusive => store.claims.run((store.namespace.name_of(&claim.key), claim.clone())).await,
        Mode::Shared => try_acquire_reader(store, claim).await,
    }
}
