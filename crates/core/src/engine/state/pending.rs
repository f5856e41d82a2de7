//! What is under way in the store for a key, or may still be in it.

use std::time::Duration;

use super::backoff::BackOff;
use super::event::{Action, GuardId, Member, Outcome, RequestId, WaiterId};
use super::lease::{FirstLease, GuardEntry, alike, cap_of};
use super::rules::{Rule, left_out};
use super::step::Step;
use super::waiter::{Changes, Waiter};
use crate::clock::Moment;
use crate::{Busy, Error, ErrorKind, GrantRef, LockKey, LockOptions, LossReason, Mode, OwnerId};

/// An owner id that asks for the key, or has a place in the store's own queue.
///
/// A claim belongs to its key: when its asker is gone, what it wins goes to the first in line who asks for just that, or
/// back to the store.
#[derive(Clone, Debug)]
pub(super) struct PendingClaim<W> {
    pub(super) owner: OwnerId,
    pub(super) member: Member,
    pub(super) mode: Mode,
    pub(super) options: LockOptions,
    /// For whom; `None` when that caller is gone.
    pub(super) for_waiter: Option<WaiterId>,
    /// Who polls the request, as long as it is nobody else's business.
    pub(super) by: Option<W>,
    /// What is under way.
    pub(super) request: Option<RequestId>,
    pub(super) sent_at: Moment,
    pub(super) overdue_at: Moment,
    /// Its answer was waited for in vain, and may come yet.
    pub(super) abandoned: bool,
    /// A send may be carried out still.
    pub(super) unanswered: bool,
    /// The epoch that a message told while it was under way: it is looked at with the answer, which may be newer.
    pub(super) message: Option<u64>,
    /// Nobody who joined later gets a shared grant of it.
    pub(super) join_limit: u64,
    /// What was known when it was sent.
    pub(super) seen: Changes,
    pub(super) position: Option<QueuePosition>,
}

/// A place in the store's own queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct QueuePosition {
    /// The epoch of who had the key when the place was last confirmed, and the largest that a grant may have since.
    pub(super) epochs: Option<(u64, u64)>,
    /// What a grant out of the queue begins with.
    pub(super) lease: FirstLease,
    /// A grant is told to who listens.
    pub(super) notifies: bool,
}

impl QueuePosition {
    /// Whether the store may have granted this epoch since the last confirmation, from which the lease counts. A message
    /// may be so late that another was granted the key since, and it may not be the store's at all.
    pub(super) fn may_have_become(&self, epoch: Option<u64>) -> bool {
        let within =
            |((before, latest), granted)| left_out(Rule::LaterEpoch) || (before < granted && granted <= latest);
        self.epochs.zip(epoch).is_some_and(within)
    }
}

impl<W> PendingClaim<W> {
    /// Whether its answer is waited for.
    pub(super) fn is_under_way(&self) -> bool {
        self.request.is_some() && !self.abandoned
    }

    /// When its answer is waited for no more. A caller that polls it itself, and on whom nobody waits, has its own limit.
    pub(super) fn overdue_at(&self) -> Moment {
        if self.is_under_way() && self.by.is_none() { self.overdue_at } else { Moment::NEVER }
    }

    pub(super) fn is_notified(&self) -> bool {
        self.position.is_some_and(|position| position.notifies)
    }

    pub(super) fn grant(&self, key: &LockKey, epoch: Option<u64>) -> GrantRef {
        GrantRef { key: key.clone(), owner: self.owner, mode: self.mode, epoch }
    }

    /// The lease of a grant that a message tells, if the store may have granted that. When it is over, only the store knows
    /// whose the key is.
    pub(super) fn notified_lease(&self, epoch: Option<u64>, now: Moment) -> Option<FirstLease> {
        let may_be = |position: &QueuePosition| position.may_have_become(epoch) && now < position.lease.deadline();
        let position = self.position.filter(may_be)?;
        Some(FirstLease { from_notification: true, ..position.lease })
    }

    /// Its owner id may have something in the store, from a claim before.
    pub(super) fn is_repeated(&self) -> bool {
        self.position.is_some() || self.unanswered
    }

    pub(super) fn fresh_lease(&self, ends: bool) -> FirstLease {
        FirstLease { length: self.options.ttl, sent_at: self.sent_at, ends, from_notification: false }
    }

    /// What a grant begins with. From its place in the store's queue it may have been granted before it was asked for again.
    /// `None`: it may have come long ago, with a lease that nobody knows.
    pub(super) fn first_lease(&self, now: Moment, ends: bool) -> Option<FirstLease> {
        match self.position {
            Some(position) => Some(position.lease).filter(|lease| now < lease.deadline()),
            None => (!self.unanswered || left_out(Rule::CountsFrom)).then(|| self.fresh_lease(ends)),
        }
    }
}

impl<W: Clone> PendingClaim<W> {
    pub(super) fn new<L>(waiter: &Waiter<W>, step: &mut Step<'_, W, L>) -> Self {
        Self {
            owner: step.random.owner(),
            member: waiter.member,
            mode: waiter.mode,
            options: waiter.options.clone(),
            for_waiter: Some(waiter.id),
            by: None,
            request: None,
            sent_at: step.now,
            overdue_at: Moment::NEVER,
            abandoned: false,
            unanswered: false,
            message: None,
            join_limit: 0,
            seen: Changes::default(),
            position: None,
        }
    }

    /// Whether a waiter that did not ask for this may have it. A shared grant is for nobody who came after it was asked
    /// for: it could return with a smaller token than somebody elsewhere who returned before it came.
    pub(super) fn goes_to(&self, waiter: &Waiter<W>) -> bool {
        let before = waiter.id.0 < self.join_limit || left_out(Rule::CameBefore);
        if left_out(Rule::SameRequest) {
            return true;
        }
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
            cap: cap_of(&self.options, step.now),
        }
    }
}

/// A grant, or a claim that may have become one, that is given back to the store.
#[derive(Clone, Debug)]
pub(super) struct PendingRelease<W> {
    pub(super) member: Member,
    pub(super) grant: GrantRef,
    pub(super) ttl: Duration,
    /// Who is told the answer, and polls the request as long as it is nobody else's business.
    pub(super) by: Option<W>,
    pub(super) alone: bool,
    pub(super) request: Option<RequestId>,
    /// When it is tried again, and how long that is worth while.
    pub(super) again_at: Moment,
    pub(super) give_up_at: Moment,
    pub(super) pauses: BackOff,
    /// A claim of this owner may reach the store late, behind its release, when the connection that carried it was given
    /// up. So it is released again for about a minute, each time after twice as long, and keeps the key for nobody for
    /// about as long as it was late, and not for its lease. Nobody waits for that, and it ends with the engine.
    pub(super) may_be_late: bool,
    /// The pause before the next of these.
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

    /// Whether a session must not claim before this is done.
    pub(super) fn blocks(&self, member: Member) -> bool {
        self.member == member && self.late_pause.is_none()
    }

    pub(super) fn next_event(&self) -> Moment {
        self.again_at
    }
}

/// A grant that the store is asked to give to a new owner: one that was detached, or a writer's that goes on as a reader's.
///
/// It belongs to its key: when nobody waits for the answer any more, what it brings goes back to the store.
#[derive(Clone, Debug)]
pub(super) struct PendingTakeOver<W> {
    /// Who is told; `None` when that caller is gone, or was told that there is no answer.
    pub(super) waiter: Option<Waiter<W>>,
    pub(super) member: Member,
    /// With the new owner.
    pub(super) grant: GrantRef,
    /// With the owner until then.
    pub(super) old: GrantRef,
    pub(super) number: u16,
    pub(super) options: LockOptions,
    /// Of a downgrade: what the writer had is to be given back if the store does not say that it has a reader now.
    pub(super) writer: Option<DowngradedWriter>,
    pub(super) request: RequestId,
    pub(super) sent_at: Moment,
    pub(super) overdue_at: Moment,
}

/// The lease of a writer that goes on as a reader.
#[derive(Clone, Debug)]
pub(super) struct DowngradedWriter {
    pub(super) ttl: Duration,
    pub(super) may_be_late: bool,
}

impl<W> PendingTakeOver<W> {
    /// When its answer is waited for no more.
    pub(super) fn overdue_at(&self) -> Moment {
        if self.waiter.is_some() { self.overdue_at } else { Moment::NEVER }
    }

    pub(super) fn tell<L>(&mut self, step: &mut Step<'_, W, L>, outcome: Outcome<L>) {
        let action = self.waiter.take().map(|waiter| Action::Wake(waiter.handle, outcome));
        step.out.extend(action);
    }

    /// There is nothing to take over.
    pub(super) fn tell_gone<L>(&mut self, step: &mut Step<'_, W, L>) {
        let lost = || Outcome::Failed(Error::new(ErrorKind::Lost(LossReason::Stolen), "downgrade"));
        let gone = if self.writer.is_some() { lost() } else { Outcome::Busy(Busy::default()) };
        self.tell(step, gone);
    }
}

/// An epoch that an engine of a session has lost. Something of it may be left in the store, where the session takes a key
/// again: a level whose release was refused, or a claim that was carried out late. Whoever joined that would have the token of
/// a guard that was told that it is lost.
#[derive(Clone, Copy, Debug)]
pub(super) struct LostEpoch {
    pub(super) member: Member,
    pub(super) epoch: u64,
    /// By then the store has nothing of it any more.
    pub(super) until: Moment,
}
