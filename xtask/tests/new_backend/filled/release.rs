use leasehold_core::{Backend, GrantRef, LeaseStatus, Result};

use crate::store::Store;

pub(crate) async fn release(store: &Store, grant: &GrantRef) -> Result<LeaseStatus> {
    store.memory()?.release(grant).await
}
