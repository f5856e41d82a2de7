use leasehold_core::{Attempt, Claim, Error, ErrorKind, Mode, Result};
use leasehold_redis::{
    Lease, NEXT_EPOCH, QUEUE_LUA, ScriptArguments, ScriptFunction, encode_metadata, read_epoch, read_queued,
};

use crate::release::release;
use crate::store::{ENTRY_LUA, LOCK, QUEUE, RENEW, Store};

pub(crate) static TRY_ACQUIRE: ScriptFunction = ScriptFunction::for_many(
    "try_acquire",
    3,
    1,
    3,
    &[NEXT_EPOCH, ENTRY_LUA, QUEUE_LUA, include_str!("lua/try_acquire.lua")],
);

/// Instead of an inbox, for a waiter without a place in the queue. `try_acquire.lua` has the same text.
const NO_PLACE: &str = "*";

/// Takes a key for the owner of `claim`, or says who is in the way, or puts the owner into the queue of the key.
pub(crate) async fn try_acquire(store: &Store, claim: &Claim) -> Result<Attempt> {
    if claim.mode == Mode::Shared {
        return Err(Error::new(ErrorKind::Unsupported, "acquire"));
    }
    let (names, inbox) = (store.redis.names(&claim.key), inbox(store, claim));
    let arguments = ScriptArguments::default()
        .name(&names, LOCK)
        .counter(&names)
        .name(&names, QUEUE)
        .word(&claim.owner.to_hex())
        .text(claim.ttl.as_millis())
        .word(&encode_metadata(claim))
        .word(&inbox);
    let reply = store.redis.run_function(&TRY_ACQUIRE, arguments, None).await?;
    match *reply.words() {
        ["granted", epoch] => {
            let lost = || store.redis.refusal(&format!("the entry of {} has lost its token", claim.key));
            let epoch = read_epoch(epoch).ok_or_else(lost)?;
            let grant = claim.grant(Some(epoch));
            let renewal = || (&RENEW, store.redis.renewal_of(&grant, claim.ttl));
            store.redis.confirm(&grant, renewal, || Box::pin(release(store, &grant))).await
        }
        ["busy", left] => {
            let left = Lease::read(left).and_then(Lease::remaining).ok_or_else(|| store.redis.script_error(&[]))?;
            Ok(Attempt::Busy { retry_in: Some(left) })
        }
        ["queued", left, numbers] => {
            read_queued(claim, left, numbers, &inbox).ok_or_else(|| store.redis.script_error(&[]))
        }
        ref words => Err(store.redis.script_error(words)),
    }
}

/// Where this claim will be notified of a grant from the queue, as `try_acquire.lua` takes it; empty if it does not wait.
fn inbox(store: &Store, claim: &Claim) -> String {
    match (claim.waits, store.queues) {
        (false, _) => String::new(),
        (true, false) => NO_PLACE.to_owned(),
        (true, true) => store.redis.inbox_of(claim),
    }
}
