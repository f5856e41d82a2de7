//! What is under way in the store for a key, or may still be in it.

use std::time::Duration;

use super::backoff::BackOff;
use super::event::{Action, GuardId, Member, Outcome, RequestId, WaiterId};
use super::lease::{FirstLease, GuardEntry, alike, cap_of};
use super::step::Step;
use super::waiter::{Changes, Waiter};
use crate::clock::Moment;
use crate::{Busy, Error, ErrorKind, GrantRef, LockKey, LockOptions, LossReason, Mode, OwnerId};

/// A claim under way, or a position in the store queue.
///
/// A claim belongs to its key: when its waiter is gone, a grant goes to the first waiter if that wants the same, or back to
/// the store.
#[derive(Clone, Debug)]
pub(super) struct PendingClaim<W> {
    pub(super) owner: OwnerId,
    pub(super) member: Member,
    pub(super) mode: Mode,
    pub(super) options: LockOptions,
    /// The waiter that sent it; `None` when that is gone.
    pub(super) for_waiter: Option<WaiterId>,
    pub(super) phase: Phase<W>,
    pub(super) sent_at: Moment,
    /// A request of this claim has an unknown outcome: the store may still carry it out.
    pub(super) unanswered: bool,
    /// A waiter that joined after this id gets no shared grant of the claim.
    pub(super) join_limit: u64,
    /// The counts of the key when the claim was sent.
    pub(super) seen: Changes,
    pub(super) position: Option<QueuePosition>,
}

/// Whether a request of a claim is under way.
#[derive(Clone, Debug)]
pub(super) enum Phase<W> {
    /// None is. The claim has a position in the store queue, or may have one.
    Placed,
    /// The answer is waited for.
    Sent {
        request: RequestId,
        /// The caller that polls the request, as long as no other caller depends on it.
        by: Option<W>,
        overdue_at: Moment,
        /// The epoch of a notification that came meanwhile. It is judged with the answer, which may be newer.
        message: Option<u64>,
    },
    /// The answer is overdue, and not waited for any more. It may still come.
    Abandoned(RequestId),
}

/// A position in the store queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct QueuePosition {
    /// The epoch of the holder when the position was last confirmed, and the largest epoch that a grant may have since.
    pub(super) epochs: Option<(u64, u64)>,
    /// The first lease of a grant out of the queue.
    pub(super) lease: FirstLease,
    /// Whether the store notifies a subscription of the grant.
    pub(super) notifies: bool,
}

impl QueuePosition {
    /// Whether the store may have granted this epoch since the position was last confirmed, from which the lease counts. A
    /// notification may be so late that another owner was granted the key since, and it may be forged.
    pub(super) fn may_have_become(&self, epoch: Option<u64>) -> bool {
        self.epochs.zip(epoch).is_some_and(|((before, latest), granted)| before < granted && granted <= latest)
    }
}

impl<W> PendingClaim<W> {
    /// Whether the answer is waited for.
    pub(super) fn is_under_way(&self) -> bool {
        matches!(self.phase, Phase::Sent { .. })
    }

    /// The request whose answer comes, or may come.
    pub(super) fn request(&self) -> Option<RequestId> {
        match self.phase {
            Phase::Placed => None,
            Phase::Sent { request, .. } | Phase::Abandoned(request) => Some(request),
        }
    }

    /// The caller that polls the request, which another task polls from now on.
    pub(super) fn detach(&mut self) -> Option<W> {
        if let Phase::Sent { by, .. } = &mut self.phase { by.take() } else { None }
    }

    /// When the answer is overdue. Never for a request that its caller polls and on which no other caller depends: that
    /// caller has a limit of its own.
    pub(super) fn overdue_at(&self) -> Moment {
        if let Phase::Sent { by: None, overdue_at, .. } = self.phase { overdue_at } else { Moment::NEVER }
    }

    pub(super) fn is_notified(&self) -> bool {
        self.position.is_some_and(|position| position.notifies)
    }

    pub(super) fn grant(&self, key: &LockKey, epoch: Option<u64>) -> GrantRef {
        GrantRef { key: key.clone(), owner: self.owner, mode: self.mode, epoch }
    }

    /// The first lease of a grant that came as a notification, if the store may have sent it. `None` once that lease is
    /// over: then only the store knows who holds the key.
    pub(super) fn notified_lease(&self, epoch: Option<u64>, now: Moment) -> Option<FirstLease> {
        let may_be = |position: &QueuePosition| position.may_have_become(epoch) && now < position.lease.deadline();
        let position = self.position.filter(may_be)?;
        Some(FirstLease { from_notification: true, ..position.lease })
    }

    /// Whether the store may have something of this owner id from an earlier request.
    pub(super) fn is_repeated(&self) -> bool {
        self.position.is_some() || self.unanswered
    }

    pub(super) fn fresh_lease(&self, ends: bool) -> FirstLease {
        FirstLease { length: self.options.ttl, sent_at: self.sent_at, ends, from_notification: false }
    }

    /// The first lease of a grant that came as an answer. A claim in the store queue may have been granted before it was
    /// sent again. `None`: the grant may be so old that its lease is unknown.
    pub(super) fn first_lease(&self, now: Moment, ends: bool) -> Option<FirstLease> {
        match self.position {
            Some(position) => Some(position.lease).filter(|lease| now < lease.deadline()),
            None => (!self.unanswered).then(|| self.fresh_lease(ends)),
        }
    }
}

impl<W: Clone> PendingClaim<W> {
    pub(super) fn new<L>(waiter: &Waiter<W>, step: &mut Step<'_, W, L>) -> Self {
        Self {
            owner: step.random.owner(step.now),
            member: waiter.member,
            mode: waiter.mode,
            options: waiter.options.clone(),
            for_waiter: Some(waiter.id),
            phase: Phase::Placed,
            sent_at: step.now,
            unanswered: false,
            join_limit: 0,
            seen: Changes::default(),
            position: None,
        }
    }

    /// Whether a grant of this claim may go to another waiter. A shared grant may not go to a waiter that came after the
    /// claim was sent: its token could be smaller than that of a holder elsewhere who released before the waiter came.
    pub(super) fn goes_to(&self, waiter: &Waiter<W>) -> bool {
        let before = waiter.id.0 < self.join_limit;
        waiter.member == self.member
            && waiter.mode == self.mode
            && alike(&waiter.options, &self.options)
            && (before || self.mode == Mode::Exclusive)
    }

    pub(super) fn entry<L>(&self, step: &mut Step<'_, W, L>) -> GuardEntry {
        GuardEntry {
            id: GuardId(step.id()),
            owner: self.owner,
            number: 0,
            renew: self.options.renew,
            cap: cap_of(self.options.max_hold, step.now),
        }
    }
}

/// A release under way: of a grant, or of a claim that may have become one.
#[derive(Clone, Debug)]
pub(super) struct PendingRelease<W> {
    pub(super) member: Member,
    pub(super) grant: GrantRef,
    pub(super) ttl: Duration,
    /// The caller that gets the answer; it polls the request as long as no other caller depends on it.
    pub(super) by: Option<W>,
    pub(super) alone: bool,
    pub(super) request: Option<RequestId>,
    /// The store gave an error for an answer: whether it carried the release out is not known, and claims wait for it no more.
    pub(super) has_failed: bool,
    /// When the release is sent again, and until when.
    pub(super) again_at: Moment,
    pub(super) give_up_at: Moment,
    pub(super) pauses: BackOff,
    /// A claim of this owner may reach the store late, after its release, if its connection was given up. So the release is
    /// repeated for about a minute, each time after twice the pause: a late claim then holds the key for about as long as it
    /// was late, and not for its lease. Nothing waits for these repetitions, and they end with the engine.
    pub(super) may_be_late: bool,
    /// The pause before the next repetition.
    pub(super) late_pause: Option<Duration>,
}

impl<W> PendingRelease<W> {
    pub(super) fn new(member: Member, grant: GrantRef, ttl: Duration, now: Moment) -> Self {
        Self {
            member,
            grant,
            ttl,
            by: None,
            alone: false,
            request: None,
            has_failed: false,
            again_at: now,
            give_up_at: now.plus(ttl),
            pauses: BackOff::after_failure(),
            may_be_late: false,
            late_pause: None,
        }
    }

    pub(super) fn again_after(&mut self, pause: Duration, now: Moment) {
        (self.late_pause, self.again_at) = (Some(pause), now.plus(pause));
    }

    /// Whether what is released may still exclude who claims the key in this mode.
    pub(super) fn is_in_the_way(&self, mode: Mode) -> bool {
        self.late_pause.is_none() && (self.grant.mode == Mode::Exclusive || mode == Mode::Exclusive)
    }
}

/// A take-over or a downgrade under way: the store gives a grant to a new owner id.
///
/// It belongs to its key: when its caller is gone, what it wins is released.
#[derive(Clone, Debug)]
pub(super) struct PendingTakeOver<W> {
    /// The caller; `None` when it is gone, or was answered that the outcome is unknown.
    pub(super) waiter: Option<Waiter<W>>,
    pub(super) member: Member,
    /// The grant with the new owner id.
    pub(super) grant: GrantRef,
    /// The grant with the old owner id.
    pub(super) old: GrantRef,
    pub(super) number: u16,
    pub(super) options: LockOptions,
    /// Of a downgrade: the writer's lease, which is released unless the store confirms the reader.
    pub(super) writer: Option<DowngradedWriter>,
    pub(super) request: RequestId,
    pub(super) sent_at: Moment,
    pub(super) overdue_at: Moment,
}

/// The lease of a writer that is downgraded.
#[derive(Clone, Debug)]
pub(super) struct DowngradedWriter {
    pub(super) ttl: Duration,
    pub(super) may_be_late: bool,
}

impl<W> PendingTakeOver<W> {
    /// When the answer is overdue.
    pub(super) fn overdue_at(&self) -> Moment {
        if self.waiter.is_some() { self.overdue_at } else { Moment::NEVER }
    }

    pub(super) fn tell<L>(&mut self, step: &mut Step<'_, W, L>, outcome: Outcome<L>) {
        let action = self.waiter.take().map(|waiter| Action::Wake(waiter.handle, outcome));
        step.out.extend(action);
    }

    /// Answers that the store does not have the old owner.
    pub(super) fn tell_gone<L>(&mut self, step: &mut Step<'_, W, L>) {
        let lost = || Outcome::Failed(Error::new(ErrorKind::Lost(LossReason::Stolen), "downgrade"));
        let gone = if self.writer.is_some() { lost() } else { Outcome::Busy(Busy::default()) };
        self.tell(step, gone);
    }
}

/// An epoch that an engine of a session has lost. Something of it may be left in the store: a level whose release was
/// refused, or a claim that was carried out late. A new level that joined it would have the token of a guard that is lost.
#[derive(Clone, Copy, Debug)]
pub(super) struct LostEpoch {
    pub(super) member: Member,
    pub(super) epoch: u64,
    /// From this moment on the store has nothing of it.
    pub(super) until: Moment,
}
