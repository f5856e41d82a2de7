use leasehold_core::{GrantRef, LeaseStatus, Result};
use leasehold_redis::{CHANNEL, ScriptArguments, ScriptFunction};

use crate::store::{LOCK, Store, epoch_argument};

pub(crate) static RELEASE: ScriptFunction = ScriptFunction::new("release", 1, 4, &[include_str!("lua/release.lua")]);

/// Gives back one level of the session `id`; with the last level, frees the key.
pub(crate) async fn release(store: &Store, id: &str, grant: &GrantRef) -> Result<LeaseStatus> {
    let names = store.names.of(&grant.key);
    let words = ScriptArguments::new()
        .name(&names, LOCK)
        .text(id)
        .owner(grant.owner)
        .text(&epoch_argument(grant))
        .name(&names, CHANNEL);
    let reply = store.commits.run(&RELEASE, words, None).await?;
    store.signals.released(&reply.words());
    store.lease_status(id, &reply, grant).await
}
