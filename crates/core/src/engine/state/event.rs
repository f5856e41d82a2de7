//! The vocabulary of the state machine: ids, events that go in, actions and requests that come out.

use std::time::Duration;

use crate::clock::Moment;
use crate::{
    Attempt, Busy, Claim, Error, GrantRef, LeaseStatus, LockKey, LockOptions, LossReason, Mode, Notification, OwnerId,
    Renewal, Result, SessionId,
};

/// An engine among those that share one state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Member(pub(super) u64);

/// Where a key is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct KeyId(pub(super) usize);

/// A caller that waits for a key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct WaiterId(pub(super) u64);

/// A lease that is held here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct LeaseId(pub(super) u64);

/// A guard on a lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct GuardId(pub(super) u64);

/// Something that was sent to the store, or a subscription.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct RequestId(pub(super) u64);

/// What the state cannot make by itself, because it has no randomness.
pub(crate) trait Randomness {
    /// A new owner id.
    fn owner(&mut self) -> OwnerId;
    /// Between a half and the whole of `pause`, so that those who failed together do not come back together.
    fn jittered(&mut self, pause: Duration) -> Duration;
}

/// What a lease and its guards share: of which grant they are, and where the guards read whether it is held.
pub(crate) trait LeaseCell: Clone {
    /// The cell of a lease that ends at `limit`.
    fn new(grant: GrantRef, limit: Moment) -> Self;
    /// What the store granted. It stays as it is.
    fn grant(&self) -> &GrantRef;
}

/// What happens, beside what a caller or a guard asks for itself.
#[derive(Clone, Debug)]
pub(crate) enum Event {
    /// The wait of a caller is at its limit, or at the end of the time for an answer under way.
    TimesUp(LockKey, WaiterId),
    /// A caller is gone, whatever it was given.
    Leave(LockKey, WaiterId),
    /// The store answered a claim.
    Answered { key: LockKey, request: RequestId, answer: Result<Attempt> },
    /// The store answered a release.
    Released { key: LockKey, request: RequestId, answer: Result<LeaseStatus> },
    /// The store answered whether a lease that was detached, or is downgraded, has its new owner.
    TakenOver { key: LockKey, request: RequestId, answer: Result<Attempt> },
    /// The store answered a batch of renewals, each of them.
    Renewed(Batch, Vec<Result<LeaseStatus>>),
    /// A subscription began, or did not.
    Subscribed { key: LockKey, request: RequestId, begun: bool },
    /// A notification of the store.
    Notified { key: LockKey, request: RequestId, notification: Notification },
    /// An operator released by force what these leases were.
    ForceReleased { key: LockKey, leases: Vec<LeaseId> },
    /// A moment that [`State::next`](super::State::next) named has come, or any other has.
    Tick,
    /// An engine is closed.
    Close(Member),
    /// A closed engine waits for nothing any more.
    Abandon(Member),
}

/// A caller that asks for a key.
#[derive(Clone, Debug)]
pub(crate) struct Join<W> {
    pub(crate) member: Member,
    pub(crate) key: LockKey,
    pub(crate) mode: Mode,
    pub(crate) options: LockOptions,
    /// When its wait is over; now, if it does not wait.
    pub(crate) limit: Moment,
    pub(crate) handle: W,
}

/// A caller that asks for a lease that was detached: as one that tries, and never in the line.
#[derive(Clone, Debug)]
pub(crate) struct Attach<W> {
    pub(crate) join: Join<W>,
    /// With the owner that the store has until then.
    pub(crate) grant: GrantRef,
    /// How many had the lease before.
    pub(crate) number: u16,
}

/// A guard, as the state knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct GuardRef {
    pub(crate) key: KeyId,
    pub(crate) lease: LeaseId,
    pub(crate) guard: GuardId,
}

/// What is to be done. Nothing of it may be left undone.
#[derive(Debug)]
pub(crate) enum Action<W, L> {
    /// A request is to be sent by the backend of `member`, and its answer to be fed back.
    ///
    /// `by` is told the answer. It polls the request itself if it is `alone`: nobody else depends on that yet.
    Send { member: Member, request: Request, by: Option<W>, alone: bool },
    /// The request of this caller must go on also if the caller is never polled again: others depend on it.
    Detached(W),
    /// This is what a caller waited for. A grant counts only if the state still says so when it is collected.
    Wake(W, Outcome<L>),
    /// The lease ends then, unless it is prolonged.
    Limit(L, Moment),
    /// The lease ended.
    End { cell: L, key: LockKey, end: End, held_for: Duration },
    /// A lease passed from guard to guard.
    HandedOff,
    /// An attempt failed, and is made again.
    AttemptFailed(LockKey, Error),
    /// A release failed, and is made again.
    ReleaseFailed(LockKey, Error),
    /// Nobody of this process listens for this key any more.
    Unsubscribe(RequestId),
    /// This engine is to be kept until it is idle.
    Keep(Member),
    /// Nothing of this engine, which is closed or kept, is under way any more.
    Idle(Member),
}

/// What is sent to the store.
#[derive(Clone, Debug)]
pub(crate) enum Request {
    Claim(RequestId, Claim),
    Release(RequestId, GrantRef),
    /// Give this grant to a new owner.
    TakeOver(RequestId, GrantRef, OwnerId, Duration),
    /// Make this claim's reader of that writer.
    Downgrade(RequestId, GrantRef, Claim),
    Renew(Batch),
    Subscribe(RequestId, LockKey),
}

/// Renewals of one engine that leave together.
#[derive(Clone, Debug)]
pub(crate) struct Batch {
    pub(crate) id: RequestId,
    pub(crate) sent_at: Moment,
    /// Of these leases, in this order, and on which keys they are.
    pub(crate) leases: Vec<LeaseId>,
    pub(crate) keys: Vec<KeyId>,
    pub(crate) renewals: Vec<Renewal>,
    /// How long the answer is waited for.
    pub(crate) within: Duration,
}

/// What a caller is told.
#[derive(Clone, Debug)]
pub(crate) enum Outcome<L> {
    Granted(Granted<L>),
    Busy(Busy),
    Failed(Error),
}

/// Whether a guard is still there for the waiter that was told of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Collected {
    Yes,
    /// Its lease ended; the waiter is in the line again.
    NotYet,
    /// It was kept for a while and is another's; the waiter has to join anew.
    TooLate,
}

/// What it came to that a guard ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GuardRelease {
    /// Its lease had ended before.
    Gone,
    /// Others of this process have the lease now.
    Passed,
    /// A release is sent.
    Sent,
}

/// A guard to be.
#[derive(Clone, Debug)]
pub(crate) struct Granted<L> {
    pub(crate) guard: GuardRef,
    /// Of this guard, where each has one of its own.
    pub(crate) owner: OwnerId,
    /// How many had the lease before, or which co-reader of a shared one it is.
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

/// What an engine is, as far as it matters here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(clippy::struct_excessive_bools, reason = "each is a capability of its own")]
pub(crate) struct Traits {
    /// For whom its backend claims, where owners in the store are sessions.
    pub(crate) session: Option<SessionId>,
    /// Its own guards take a key again.
    pub(crate) reentrant: bool,
    /// Leases end by themselves.
    pub(crate) leased: bool,
    /// The store has a queue of its own, so that nobody polls.
    pub(crate) queues: bool,
    /// There are notifications to subscribe to.
    pub(crate) notifies: bool,
    /// How long an answer takes at most, while what carries it is driven.
    pub(crate) answers_within: Duration,
    /// How many renewals go into one call at most.
    pub(crate) batch: usize,
    /// How often a lease may pass from guard to guard; 0 for never, and every reader asks for itself.
    pub(crate) handoffs: u16,
    /// None any more at this age of the lease.
    pub(crate) handoff_age: Duration,
}
