use leasehold_core::{GrantRef, LeaseStatus, Result};

use crate::store::Store;

/// Frees a key, if the owner of the grant still holds it.
pub(crate) async fn release(store: &Store, grant: &GrantRef) -> Result<LeaseStatus> {
    let released = store.releases.run((store.namespace.name_of(&grant.key), grant.owner)).await;
    if let (Some(queue), Ok(_)) = (&store.advisory_queue, &released) {
        queue.released(grant).await;
    }
    released
}
