use std::time::Duration;

use leasehold_core::{Attempt, Claim, Error, ErrorKind, Mode, Result};
use leasehold_redis::{
    KeyNames, Lease, NEXT_EPOCH, Reply, ScriptArguments, ScriptFunction, encode_metadata, read_epoch,
};

use crate::release::release;
use crate::store::{FENCE, LOCK, QUEUE, QUEUE_LUA, Store};

pub(crate) static TRY_ACQUIRE: ScriptFunction =
    ScriptFunction::for_many("try_acquire", 3, 1, 4, &[NEXT_EPOCH, QUEUE_LUA, include_str!("lua/try_acquire.lua")]);

/// The inbox of a waiter that gets no notifications: it asks for what it is granted. `queue.lua` has the same text.
const NO_INBOX: &str = "-";

/// Instead of an inbox, for a waiter without a place in the queue. `try_acquire.lua` has the same text.
const NO_PLACE: &str = "*";

/// The longest lease that a grant from the queue begins with, as in `queue.lua`: a waiter that died without a trace keeps
/// the others for no longer.
const LONGEST_FIRST_LEASE: Duration = Duration::from_secs(3);

/// Takes a key for the owner of `claim`, or says who is in the way, or puts the owner into the queue of the key.
pub(crate) async fn try_acquire(store: &Store, claim: &Claim) -> Result<Attempt> {
    if claim.mode == Mode::Shared {
        return Err(Error::new(ErrorKind::Unsupported, "acquire"));
    }
    let (names, inbox) = (store.redis.names(&claim.key), inbox(store, claim));
    let arguments = ScriptArguments::default()
        .name(&names, LOCK)
        .name(&names, FENCE)
        .name(&names, QUEUE)
        .word(&claim.owner.to_hex())
        .text(claim.ttl.as_millis())
        .text(store.fence_retention.as_millis())
        .word(&encode_metadata(claim))
        .word(&inbox);
    let reply = store.redis.run_function(&TRY_ACQUIRE, arguments, None).await?;
    answered(store, claim, &names, &inbox, &reply).await
}

/// Reads the answer of `try_acquire.lua`.
async fn answered(store: &Store, claim: &Claim, names: &KeyNames, inbox: &str, reply: &Reply) -> Result<Attempt> {
    match *reply.words() {
        ["granted", epoch] => match read_epoch(epoch) {
            Some(epoch) => granted(store, claim, names, epoch).await,
            None => Err(store.redis.refusal(&format!("the entry of {} has lost its token", claim.key))),
        },
        ["busy", left] => {
            let left = Lease::read(left).and_then(Lease::remaining).ok_or_else(|| store.redis.script_error(&[]))?;
            Ok(Attempt::Busy { retry_in: Some(left) })
        }
        ["queued", left, numbers] => queued(claim, left, numbers, inbox).ok_or_else(|| store.redis.script_error(&[])),
        ref words => Err(store.redis.script_error(words)),
    }
}

/// Has the replicas confirm a grant, where the builder asked for that; gives it back if they do not.
async fn granted(store: &Store, claim: &Claim, names: &KeyNames, epoch: u64) -> Result<Attempt> {
    if !store.redis.awaits_replicas() {
        return Ok(Attempt::Granted { epoch: Some(epoch) });
    }
    let grant = claim.grant(Some(epoch));
    store.redis.confirm(&names.part(LOCK), epoch, Box::pin(release(store, &grant))).await
}

/// Where this claim will be notified of a grant from the queue, as `try_acquire.lua` takes it; empty if it does not wait.
fn inbox(store: &Store, claim: &Claim) -> String {
    match (claim.waits, store.queues) {
        (false, _) => String::new(),
        (true, false) => NO_PLACE.to_owned(),
        (true, true) => store.redis.inbox().unwrap_or_else(|| NO_INBOX.to_owned()),
    }
}

/// Reads an answer `queued`. `None`: it is nothing that the script answers.
fn queued(claim: &Claim, left: &str, numbers: &str, inbox: &str) -> Option<Attempt> {
    let (holder, latest) = numbers.split_once(' ').filter(|(holder, _)| *holder == "-" || is_digits(holder))?;
    let (left, latest) = (Lease::read(left)?.remaining()?, latest.parse::<i64>().ok()?);
    let lease = claim.ttl.min(LONGEST_FIRST_LEASE);
    Some(Attempt::Queued {
        epoch_of_holder: holder.parse().ok(),
        // Beyond all numbers, because somebody wrote one into the entry: then none is believed.
        latest_epoch: Some(latest.try_into().unwrap_or(0)),
        // Three times within its first lease, and when the lease in the way runs out.
        retry_in: (lease / 3).min(left + Duration::from_millis(1)),
        notifies: inbox != NO_INBOX,
        lease,
    })
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}
