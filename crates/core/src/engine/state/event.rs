//! The vocabulary of the state machine: ids, events that go in, actions and requests that come out.

use std::num::NonZeroU64;
use std::time::Duration;

use smallvec::SmallVec;

use crate::clock::Moment;
use crate::{
    Attempt, Busy, Claim, Error, GrantRef, LeaseStatus, LockKey, LockOptions, LossReason, Mode, Notification, OwnerId,
    ReleaseOutcome, Renewal, Result, SessionId,
};

/// Names an engine among those that share one state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Member(pub(super) u64);

/// Names a key by the position at which it is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct KeyId(pub(super) u32);

impl KeyId {
    pub(super) fn index(self) -> usize {
        self.0 as usize
    }
}

/// Names a caller that waits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct WaiterId(pub(super) u64);

/// Names a lease of this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct LeaseId(pub(super) u64);

/// Names a guard on a lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct GuardId(pub(super) u64);

/// Names a request to the store, or a subscription, and where its key is. If the key is forgotten and another is there, that
/// one has no such request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct RequestId(pub(super) KeyId, pub(super) u64);

/// Names a batch of renewals.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct BatchId(pub(super) NonZeroU64);

/// The randomness that the state machine needs and does not have itself.
pub(crate) trait Randomness {
    /// A new owner id, to be used now.
    fn owner(&mut self, now: Moment) -> OwnerId;
    /// A random duration between half of `pause` and `pause`, so that callers that failed together do not retry together.
    fn jittered(&mut self, pause: Duration) -> Duration;
}

/// Shared by a lease and its guards: the grant, and what guards read to know whether it is held.
pub(crate) trait LeaseCell: Clone {
    /// The cell of a lease that ends at `limit`.
    fn new(grant: GrantRef, limit: Moment) -> Self;
    // What the grant is does not change.
    fn key(&self) -> &LockKey;
    fn owner(&self) -> OwnerId;
    fn mode(&self) -> Mode;
    fn epoch(&self) -> Option<u64>;

    fn grant(&self) -> GrantRef {
        GrantRef { key: self.key().clone(), owner: self.owner(), mode: self.mode(), epoch: self.epoch() }
    }
}

/// What happens to the state, beside the calls that return a value (`join`, `collect`, `release_guard`, …).
#[derive(Clone, Debug)]
pub(crate) enum Event {
    /// A caller is at the limit of its wait, or at the end of the time for an answer under way.
    TimesUp(LockKey, WaiterId),
    /// The task of a caller is polled, which was called, or came for a guard and did not get it.
    Polled(LockKey, WaiterId),
    /// A caller is gone. What it was offered goes to the next waiter.
    Leave(LockKey, WaiterId),
    /// The store answered a claim.
    Answered { request: RequestId, answer: Result<Attempt> },
    /// The store answered a release.
    Released { request: RequestId, answer: Result<LeaseStatus> },
    /// The store answered a take-over or a downgrade.
    TakenOver { request: RequestId, answer: Result<Attempt> },
    /// The store answered a batch of renewals, with an answer for each.
    Renewed(Batch, Vec<Result<LeaseStatus>>),
    /// A subscription began (`begun`), or could not begin.
    Subscribed { request: RequestId, begun: bool },
    /// A subscription received a notification.
    Notified { request: RequestId, notification: Notification },
    /// An operator released these leases by force.
    ForceReleased { key: LockKey, leases: Vec<LeaseId> },
    /// Time has passed. Needed at the moment that [`State::next`](super::State::next) names, harmless at any other.
    Tick,
    /// An engine is closed.
    Close(Member),
    /// A closed engine stops waiting for what is under way.
    Abandon(Member),
}

/// A call of `acquire`.
#[derive(Clone, Debug)]
pub(crate) struct Join<W> {
    pub(crate) member: Member,
    pub(crate) key: LockKey,
    pub(crate) mode: Mode,
    pub(crate) options: LockOptions,
    /// The limit of the wait; the present moment for a try.
    pub(crate) limit: Moment,
    pub(crate) handle: W,
}

/// A call of `attach`. It is like a try, and never in the wait queue.
#[derive(Clone, Debug)]
pub(crate) struct Attach<W> {
    pub(crate) join: Join<W>,
    /// The grant with the owner id that the store has before.
    pub(crate) grant: GrantRef,
    /// How many guards had the lease before.
    pub(crate) number: u16,
}

/// Where a guard is: its key, lease and id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct GuardRef {
    pub(crate) key: KeyId,
    pub(crate) lease: LeaseId,
    pub(crate) guard: GuardId,
}

/// What the driver has to do. It must carry every action out.
#[derive(Debug)]
pub(crate) enum Action<W, L> {
    /// Send a request by the backend of `member`, and feed its answer back.
    ///
    /// `by` gets the answer. It polls the request itself if it is `alone`: no other caller depends on it yet.
    Send { member: Member, request: Request, by: Option<W>, alone: bool },
    /// Move the request of this caller to a task: others depend on it, and it must go on also if the caller is never polled
    /// again.
    Detached(W),
    /// Give a caller its outcome. A grant counts only if the caller can still collect it.
    Wake(W, Outcome<L>),
    /// Set the moment at which the lease ends unless it is prolonged.
    Limit(L, Moment),
    /// Mark the lease as ended.
    End { cell: L, key: LockKey, end: End, held_for: Duration },
    /// Record a local hand-off.
    HandedOff,
    /// Record that a claim failed. It is sent again.
    AttemptFailed(LockKey, Error),
    /// Record that a release failed. It is sent again.
    ReleaseFailed(LockKey, Error),
    /// End this subscription.
    Unsubscribe(RequestId),
    /// Keep this engine alive until it is idle.
    Keep(Member),
    /// No request of this engine, which is closed or kept alive, is under way any more.
    Idle(Member),
}

/// The actions of one event: rarely more than two.
pub(crate) type Actions<W, L> = SmallVec<[Action<W, L>; 2]>;

/// A request to the store.
#[derive(Clone, Debug)]
pub(crate) enum Request {
    Claim(RequestId, Claim),
    Release(RequestId, GrantRef),
    /// Replace the owner of this grant by the new one, with this ttl.
    TakeOver(RequestId, GrantRef, OwnerId, Duration),
    /// Turn this writer into the reader of this claim.
    Downgrade(RequestId, GrantRef, Claim),
    Renew(Batch),
    Subscribe(RequestId, LockKey),
}

/// Renewals of one engine that are sent together.
#[derive(Clone, Debug)]
pub(crate) struct Batch {
    pub(crate) id: BatchId,
    pub(crate) sent_at: Moment,
    /// The leases, in the order of `renewals`, and their keys.
    pub(crate) leases: Vec<LeaseId>,
    pub(crate) keys: Vec<KeyId>,
    pub(crate) renewals: Vec<Renewal>,
    /// How long the answer is waited for.
    pub(crate) within: Duration,
}

/// The outcome of a call.
#[derive(Clone, Debug)]
pub(crate) enum Outcome<L> {
    Granted(Granted<L>),
    Busy(Busy),
    Failed(Error),
    /// It waits on, and answers with [`Event::Polled`], because somebody before it may not be polled.
    Called,
}

/// Whether a waiter that was told of a guard still gets it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Collected {
    Yes,
    /// The lease ended, or others were first; the waiter waits on.
    NotYet,
    /// The waiter was answered otherwise, before this word came; it has to join again.
    TooLate,
}

/// What the release of a guard led to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GuardRelease {
    /// The lease had ended before.
    Gone,
    /// Other guards of this process have the lease now.
    Passed,
    /// Other guards of this process have the lease now, and the store was asked whether it is still held.
    Asked,
    /// A release was sent to the store.
    Sent,
}

impl GuardRelease {
    /// What the store's answer means to the caller, where the lease has ended here so.
    pub(crate) fn outcome(self, answer: LeaseStatus, end: Option<End>) -> ReleaseOutcome {
        match answer {
            LeaseStatus::Held => ReleaseOutcome::Released,
            // The other readers have left meanwhile, and their release came to the store before the question.
            LeaseStatus::NotHeld if self == Self::Asked && end == Some(End::Released) => ReleaseOutcome::Released,
            LeaseStatus::NotHeld => ReleaseOutcome::AlreadyLost(LossReason::Stolen),
            LeaseStatus::ForceReleased => ReleaseOutcome::AlreadyLost(LossReason::ForceReleased),
        }
    }
}

/// A guard that is offered to a waiter.
#[derive(Clone, Debug)]
pub(crate) struct Granted<L> {
    pub(crate) guard: GuardRef,
    /// The owner id of this guard: levels of a session have one each.
    pub(crate) owner: OwnerId,
    /// How many guards had the lease before, or which co-reader it is.
    pub(crate) number: u16,
    pub(crate) cell: L,
}

/// How a lease ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum End {
    Released,
    Detached,
    Lost(LossReason),
}

impl End {
    pub(crate) fn loss(self) -> Option<LossReason> {
        if let Self::Lost(reason) = self { Some(reason) } else { None }
    }
}

/// The properties of an engine that the state machine needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(clippy::struct_excessive_bools, reason = "each is a capability of its own")]
pub(crate) struct Traits {
    /// The session for which its backend claims, where owners in the store are sessions.
    pub(crate) session: Option<SessionId>,
    /// Whether the engine may take a key again that it holds.
    pub(crate) reentrant: bool,
    /// Whether leases end by themselves.
    pub(crate) leased: bool,
    /// Whether the store has a queue, so that no waiter polls.
    pub(crate) queues: bool,
    /// Whether a writer that waits leaves a mark in the store, without a place in a queue.
    pub(crate) marks: bool,
    /// Whether the backend has notifications.
    pub(crate) notifies: bool,
    /// The longest time for an answer, while the runtime that carries the request is driven.
    pub(crate) answers_within: Duration,
    /// The largest batch of renewals.
    pub(crate) batch: usize,
    /// The largest number of local hand-offs of a lease. 0: none, and every reader sends its own claim.
    pub(crate) handoffs: u16,
    /// No local hand-off once the lease has this age.
    pub(crate) handoff_age: Duration,
}
