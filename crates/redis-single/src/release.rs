use leasehold_core::{GrantRef, LeaseStatus, OwnerId, Result};
use leasehold_redis::{KeyNames, NEXT_EPOCH, QUEUE_LUA, Reply, ScriptArguments, ScriptFunction};

use crate::store::{ENTRY_LUA, LOCK, QUEUE, Store};

pub(crate) static RELEASE: ScriptFunction =
    ScriptFunction::for_many("release", 3, 1, 0, &[NEXT_EPOCH, ENTRY_LUA, QUEUE_LUA, include_str!("lua/release.lua")]);

/// Frees a key if the server still has its owner, or takes the owner out of the queue of the key.
pub(crate) async fn release(store: &Store, grant: &GrantRef) -> Result<LeaseStatus> {
    let reply = release_owner(store, &store.redis.names(&grant.key), grant.owner).await?;
    store.redis.lease_status(&reply, grant).await
}

/// Runs `release.lua` for one owner of a key.
pub(crate) async fn release_owner(store: &Store, names: &KeyNames, owner: OwnerId) -> Result<Reply> {
    let arguments = ScriptArguments::default().name(names, LOCK).counter(names).name(names, QUEUE);
    let arguments = arguments.word(&owner.to_hex());
    let reply = store.redis.run_function(&RELEASE, arguments, None).await?;
    if let ["held", reason @ ..] = &reply.words()[..] {
        store.redis.warn_of_waiters(reason);
    }
    Ok(reply)
}
