use leasehold_core::{GrantRef, LeaseStatus, Result};
use leasehold_redis::{CHANNEL, ScriptArguments, ScriptFunction};

use crate::store::{LOCK, Store, epoch_argument};

pub(crate) static RELEASE: ScriptFunction = ScriptFunction::new("release", 1, 4, &[include_str!("lua/release.lua")]);

/// Gives back one level of the session `id`; with the last level, frees the key.
pub(crate) async fn release(store: &Store, id: &str, grant: &GrantRef) -> Result<LeaseStatus> {
    let names = store.redis.names(&grant.key);
    let arguments = ScriptArguments::default()
        .name(&names, LOCK)
        .text(id)
        .text(grant.owner.to_hex())
        .text(epoch_argument(grant))
        .name(&names, CHANNEL);
    let reply = store.redis.run_function(&RELEASE, arguments, None).await?;
    if let ["held", reason @ ..] = &reply.words()[..] {
        store.redis.warn_of_waiters(reason);
    }
    store.lease_status(id, &reply, grant).await
}
