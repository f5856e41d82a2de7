use leasehold_core::{Attempt, Backend, Claim, Result};

use crate::store::Store;

pub(crate) async fn try_acquire(store: &Store, claim: &Claim) -> Result<Attempt> {
    store.memory()?.try_acquire(claim).await
}
