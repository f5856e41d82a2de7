use leasehold_core::{GrantRef, LeaseStatus, Mode, Result};
use leasehold_mysql::{Step, named};

use crate::store::Store;

/// Ends the grant of a writer or a reader, if its owner still holds the key.
pub(crate) async fn release(store: &Store, grant: &GrantRef) -> Result<LeaseStatus> {
    match grant.mode {
        Mode::Exclusive => release_writer(store, grant).await,
        Mode::Shared => release_reader(store, grant).await,
    }
}

/// Frees the key of a writer, or takes the mark of a waiting writer back.
async fn release_writer(store: &Store, grant: &GrantRef) -> Result<LeaseStatus> {
    store.releases.run((store.namespace.name_of(&grant.key), grant.owner)).await
}

/// Deletes the row of a reader, also if the reader has lost its lease.
async fn release_reader(store: &Store, grant: &GrantRef) -> Result<LeaseStatus> {
    let params = named([("name", store.name(&grant.key)), ("owner", grant.owner.as_bytes().into())]);
    let step = Step::new("release", &store.statements.release_reader);
    if store.sessions.run(step, params.clone()).await?.affected > 0 {
        return Ok(LeaseStatus::Held);
    }
    let name = store.namespace.name_of(&grant.key);
    let status = store.statements.readers().why_not_released(&store.sessions, name, grant.owner).await?;
    store.sessions.run(Step::new("release", &store.statements.delete_reader).repeatable(), params).await?;
    Ok(status)
}
