use std::time::Duration;

use leasehold_core::{Attempt, Claim, Error, ErrorKind, Mode, Result};
use leasehold_redis::{
    KeyNames, Lease, Metadata, NEXT_EPOCH, Reply, ScriptArguments, ScriptFunction, lease, number, script_error,
};

use crate::release::release;
use crate::store::{FENCE, LOCK, QUEUE, QUEUE_LUA, Store};

pub(crate) static TRY_ACQUIRE: ScriptFunction =
    ScriptFunction::new("try_acquire", 3, 5, &[NEXT_EPOCH, QUEUE_LUA, include_str!("lua/try_acquire.lua")]);

/// The inbox of a waiter that gets no notifications: it asks for what it is granted. `queue.lua` has the same text.
const NO_INBOX: &str = "-";

/// The longest lease that a grant from the queue begins with, as in `queue.lua`: a waiter that died without a trace keeps
/// the others for no longer.
const LONGEST_FIRST_LEASE: Duration = Duration::from_secs(3);

/// Takes a key for the owner of `claim`, or says who is in the way, or puts the owner into the queue of the key.
pub(crate) async fn try_acquire(store: &Store, claim: &Claim) -> Result<Attempt> {
    if claim.mode == Mode::Shared {
        return Err(Error::new(ErrorKind::Unsupported, "acquire"));
    }
    let (names, inbox) = (store.names.of(&claim.key), inbox(store, claim));
    let words = ScriptArguments::new()
        .name(&names, LOCK)
        .name(&names, FENCE)
        .name(&names, QUEUE)
        .owner(claim.owner)
        .millis(claim.ttl)
        .millis(store.fence_retention)
        .text(&Metadata::of(claim).tail())
        .text(&inbox);
    let reply = store.commits.run(&TRY_ACQUIRE, words, None).await?;
    answered(store, claim, &names, &inbox, &reply).await
}

/// Reads the answer of `try_acquire.lua`.
async fn answered(store: &Store, claim: &Claim, names: &KeyNames, inbox: &str, reply: &Reply) -> Result<Attempt> {
    let refused = |told: String| Err(Error::new(ErrorKind::Backend, "acquire").detail(store.connection.quote(&told)));
    match *reply.words() {
        ["granted", epoch] => match number(epoch) {
            Some(epoch) => granted(store, claim, names, epoch).await,
            None => refused(format!("the entry of {} has lost its token", claim.key)),
        },
        ["busy", left] => {
            let left = lease(left).and_then(Lease::remaining).ok_or_else(|| script_error(&store.connection, &[]))?;
            Ok(Attempt::Busy { retry_in: Some(left) })
        }
        ["queued", left, numbers] => {
            queued(claim, left, numbers, inbox).ok_or_else(|| script_error(&store.connection, &[]))
        }
        ["endless", key] => {
            refused(format!("the entry `{key}` never expires, so Leasehold did not write it; force-release frees it"))
        }
        ["spent", key] => refused(format!("the counter `{key}` is beyond 2^53; delete it")),
        ref words => Err(script_error(&store.connection, words)),
    }
}

/// Has the replicas confirm a grant, where the builder asked for that; gives it back if they do not.
async fn granted(store: &Store, claim: &Claim, names: &KeyNames, epoch: u64) -> Result<Attempt> {
    let Some(confirmation) = store.confirmation else { return Ok(Attempt::Granted { epoch: Some(epoch) }) };
    let grant = claim.grant(Some(epoch));
    let give_back = release(store, &grant);
    Box::pin(confirmation.confirm(&store.connection, &names.part(LOCK), epoch, give_back)).await
}

/// Where this claim will be notified of a grant from the queue, as `queue.lua` takes it; empty if it does not queue.
fn inbox(store: &Store, claim: &Claim) -> String {
    match store.signals.inbox() {
        _ if !store.queues || !claim.waits => String::new(),
        None => NO_INBOX.to_owned(),
        // A node of a Cluster knows only its own subscribers.
        Some(inbox) if store.connection.is_clustered() => format!("?{inbox}"),
        Some(inbox) => format!("!{inbox}"),
    }
}

/// Reads an answer `queued`. `None`: it is nothing that the script answers.
fn queued(claim: &Claim, left: &str, numbers: &str, inbox: &str) -> Option<Attempt> {
    let (holder, latest) = numbers.split_once(' ').filter(|(holder, _)| *holder == "-" || is_digits(holder))?;
    let (left, latest) = (lease(left)?.remaining()?, latest.parse::<i64>().ok()?);
    let lease = claim.ttl.min(LONGEST_FIRST_LEASE);
    Some(Attempt::Queued {
        epoch_of_holder: holder.parse().ok(),
        // Beyond all numbers, because somebody wrote one into the entry: then none is believed.
        latest_epoch: Some(latest.try_into().unwrap_or(0)),
        // Three times within its first lease, and when the lease in the way runs out.
        retry_in: (lease / 3).min(left + Duration::from_millis(1)),
        told: inbox != NO_INBOX,
        lease,
    })
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}
