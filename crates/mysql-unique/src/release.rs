use leasehold_core::{GrantRef, LeaseStatus, Result};
use leasehold_mysql::{Step, named};

use crate::store::Store;

/// Frees a key, if the owner of the grant still holds it.
pub(crate) async fn release(store: &Store, grant: &GrantRef) -> Result<LeaseStatus> {
    let params = named([("name", store.name(&grant.key)), ("owner", grant.owner.as_bytes().into())]);
    let reply = store.sessions.run(Step::new("release", &store.statements.release), params).await?;
    if let Some(queue) = &store.advisory_queue {
        queue.released(grant).await;
    }
    if reply.affected > 0 {
        return Ok(LeaseStatus::Held);
    }
    let name = store.namespace.name_of(&grant.key);
    store.statements.leases().why_not_released(&store.sessions, name, grant.owner).await
}
