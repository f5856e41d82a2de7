use leasehold_core::{GrantRef, LeaseStatus, Result};

use crate::store::Store;

/// Frees a key, if the owner of the grant still holds it.
pub(crate) async fn release(store: &Store, grant: &GrantRef) -> Result<LeaseStatus> {
    store.releases.run((store.sessions.address().namespace.name_of(&grant.key), grant.owner)).await
}
