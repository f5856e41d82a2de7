use leasehold_core::{Attempt, Claim, GrantRef, Result};
use leasehold_redis::{
    KeyNames, Lease, NEXT_EPOCH, PROLONG, QUEUE_LUA, Reply, Script, ScriptArguments, ScriptFunction, encode_metadata,
    read_epoch, read_queued,
};

use crate::release::release;
use crate::store::{HOLDERS_LUA, LOCK, QUEUE, READERS, RENEW, SERVE_LUA, Store, word_of};

pub(crate) static TRY_ACQUIRE: ScriptFunction = ScriptFunction::new(
    "try_acquire",
    4,
    5,
    &[NEXT_EPOCH, PROLONG, HOLDERS_LUA, QUEUE_LUA, SERVE_LUA, include_str!("lua/try_acquire.lua")],
);

static DOWNGRADE: Script =
    Script::new(&[NEXT_EPOCH, PROLONG, HOLDERS_LUA, QUEUE_LUA, SERVE_LUA, include_str!("lua/downgrade.lua")]);

/// Takes a key for the owner of `claim`, as the writer or as a reader, or says who is in the way, or puts the owner into the
/// queue of the key.
pub(crate) async fn try_acquire(store: &Store, claim: &Claim) -> Result<Attempt> {
    let (names, inbox) = (store.names(&claim.key), store.inbox_of(claim));
    let arguments = keys(&names)
        .word(&claim.owner.to_hex())
        .word(word_of(claim.mode))
        .text(claim.ttl.as_millis())
        .word(&encode_metadata(claim))
        .word(&inbox);
    let reply = store.run_function(&TRY_ACQUIRE, arguments, None).await?;
    match *reply.words() {
        ["busy", left] => Ok(Attempt::Busy { retry_in: Lease::read(left).and_then(Lease::remaining) }),
        ["queued", left, numbers] => read_queued(claim, left, numbers, &inbox).ok_or_else(|| store.script_error(&[])),
        _ => granted(store, claim, &reply).await,
    }
}

/// Makes a reader of a writer.
pub(crate) async fn downgrade(store: &Store, writer: &GrantRef, claim: &Claim) -> Result<Attempt> {
    let names = store.names(&claim.key);
    let arguments = keys(&names)
        .text(writer.owner.to_hex())
        .text(writer.epoch.unwrap_or_default())
        .text(claim.owner.to_hex())
        .text(claim.ttl.as_millis())
        .text(encode_metadata(claim));
    let reply = store.run(&DOWNGRADE, 4, arguments, None).await?;
    if reply.words() == ["gone"] {
        return Ok(Attempt::Busy { retry_in: None });
    }
    granted(store, claim, &reply).await
}

fn keys(names: &KeyNames) -> ScriptArguments {
    ScriptArguments::default().name(names, LOCK).counter(names).name(names, QUEUE).name(names, READERS)
}

/// Reads the answer `granted`, and has the replicas confirm it, where the builder asked for that; gives it back if they do not.
async fn granted(store: &Store, claim: &Claim, reply: &Reply) -> Result<Attempt> {
    let words = reply.words();
    let Some(epoch) = words.strip_prefix(&["granted"]).and_then(|epoch| read_epoch(epoch.first()?)) else {
        return Err(store.script_error(&words));
    };
    let grant = claim.grant(Some(epoch));
    let renewal = || (&RENEW, store.renewal_of(&grant, claim.ttl));
    store.confirm(&grant, renewal, || Box::pin(release(store, &grant))).await
}
