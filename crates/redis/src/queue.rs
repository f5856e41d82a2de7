//! The queue of a key, in which the waiters of all processes stand: what the scripts share, and what their answers mean.

use std::time::Duration;

use leasehold_core::{Attempt, Claim};

use crate::keyspace::number::Lease;
use crate::store::Store;

/// The part of a key's names that has its queue.
pub const QUEUE: &str = "queue";

/// A source for a [`ScriptFunction`](crate::ScriptFunction) that claims or releases a key with a queue, behind
/// [`NEXT_EPOCH`](crate::NEXT_EPOCH) and a function `grant_waiter(lock, fence, owner, lease, metadata)` of the backend. Its
/// `queues()` has the functions `serve`, `queue` and `leave`.
pub const QUEUE_LUA: &str = include_str!("lua/queue.lua");

/// The inbox of a waiter that gets no notifications: it asks for what it is granted. `queue.lua` has the same text.
const NO_INBOX: &str = "-";

/// The longest lease that a grant from the queue begins with, as in `queue.lua`: a waiter that died without a trace keeps
/// the others for no longer.
const LONGEST_FIRST_LEASE: Duration = Duration::from_secs(3);

/// A waiter asks no more often than this to keep its place, however short its lease: whether its first lease lasts is asked once
/// more when it is told of a grant.
const LEAST_PAUSE: Duration = Duration::from_millis(50);

impl Store {
    /// Where this claim will be notified of a grant from the queue, as its script takes it; empty if it does not wait.
    pub fn inbox_of(&self, claim: &Claim) -> String {
        if claim.waits { self.inbox().unwrap_or_else(|| NO_INBOX.to_owned()) } else { String::new() }
    }
}

/// Reads the answer of a script that has put the claim into the queue: the ms that are left of the lease in the way; and the
/// epoch of the newest grant or `-`, a space, and the largest epoch that a grant from the queue may have while the place counts.
/// `None`: it is nothing that such a script answers.
pub fn read_queued(claim: &Claim, left: &str, numbers: &str, inbox: &str) -> Option<Attempt> {
    let (newest, latest) = numbers.split_once(' ').filter(|(newest, _)| *newest == "-" || is_digits(newest))?;
    let (left, latest) = (Lease::read(left)?.remaining()?, latest.parse::<i64>().ok()?);
    let lease = claim.ttl.min(LONGEST_FIRST_LEASE);
    Some(Attempt::Queued {
        epoch_of_holder: newest.parse().ok(),
        // Beyond all numbers, because somebody wrote one into the entry: then none is believed.
        latest_epoch: Some(latest.try_into().unwrap_or(0)),
        // Three times within its first lease, and when the lease in the way runs out.
        retry_in: (lease / 3).max(LEAST_PAUSE).min(left + Duration::from_millis(1)),
        notifies: inbox != NO_INBOX,
        lease,
    })
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}
