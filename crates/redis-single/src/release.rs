use leasehold_core::{GrantRef, LeaseStatus, OwnerId, Result};
use leasehold_redis::{CHANNEL, KeyNames, NEXT_EPOCH, Reply, ScriptArguments, ScriptFunction};

use crate::store::{FENCE, LOCK, QUEUE, QUEUE_LUA, Store};

pub(crate) static RELEASE: ScriptFunction =
    ScriptFunction::new("release", 3, 2, &[NEXT_EPOCH, QUEUE_LUA, include_str!("lua/release.lua")]);

/// Frees a key if the server still has its owner, or takes the owner out of the queue of the key.
pub(crate) async fn release(store: &Store, grant: &GrantRef) -> Result<LeaseStatus> {
    let reply = release_owner(store, &store.redis.names(&grant.key), grant.owner).await?;
    store.lease_status(&reply, grant).await
}

/// Runs `release.lua` for one owner of a key.
pub(crate) async fn release_owner(store: &Store, names: &KeyNames, owner: OwnerId) -> Result<Reply> {
    let arguments = ScriptArguments::default().name(names, LOCK).name(names, FENCE).name(names, QUEUE);
    let arguments = arguments.text(owner.to_hex()).name(names, CHANNEL);
    let reply = store.redis.run_function(&RELEASE, arguments, None).await?;
    if let ["held", reason @ ..] = &reply.words()[..] {
        store.redis.warn_of_waiters(reason);
    }
    Ok(reply)
}
