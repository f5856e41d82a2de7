use leasehold_core::{GrantRef, LeaseStatus, OwnerId, Result};
use leasehold_redis::{KeyNames, NEXT_EPOCH, PROLONG, QUEUE_LUA, Reply, ScriptArguments, ScriptFunction};

use crate::store::{HOLDERS_LUA, LOCK, QUEUE, READERS, SERVE_LUA, Store};

pub(crate) static RELEASE: ScriptFunction = ScriptFunction::new(
    "release",
    4,
    1,
    &[NEXT_EPOCH, PROLONG, HOLDERS_LUA, QUEUE_LUA, SERVE_LUA, include_str!("lua/release.lua")],
);

/// Takes an owner out of the holders of a key, or out of its queue.
pub(crate) async fn release(store: &Store, grant: &GrantRef) -> Result<LeaseStatus> {
    let reply = release_owner(store, &store.names(&grant.key), grant.owner).await?;
    store.lease_status(&reply, grant).await
}

/// Runs `release.lua` for one owner of a key.
pub(crate) async fn release_owner(store: &Store, names: &KeyNames, owner: OwnerId) -> Result<Reply> {
    let arguments = ScriptArguments::default().name(names, LOCK).counter(names).name(names, QUEUE).name(names, READERS);
    let reply = store.run_function(&RELEASE, arguments.word(&owner.to_hex()), None).await?;
    if let ["held", reason @ ..] = &reply.words()[..] {
        store.warn_of_waiters(reason);
    }
    Ok(reply)
}
