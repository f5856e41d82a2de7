//! One key: its wait queue, who of it sends a claim next, and when the key needs attention.

use super::backoff::BackOff;
use super::event::{Action, End, Join, KeyId, LeaseCell, Member, Outcome, WaiterId};
use super::in_store::InStore;
use super::lease::Lease;
use super::pending::{PendingClaim, PendingRelease, PendingTakeOver};
use super::queue::Queue;
use super::step::Step;
use super::waiter::{LastAnswer, Waiter, no_answer};
use crate::clock::Moment;
use crate::{Busy, Error, ErrorKind, LockKey, LossReason, Mode};

/// What this process knows of one key.
#[derive(Clone, Debug)]
pub(super) struct Key<W, L> {
    pub(super) name: LockKey,
    pub(super) id: KeyId,
    pub(super) queue: Queue<W>,
    pub(super) leases: Vec<Lease<L>>,
    pub(super) store: InStore<W>,
    /// The moment at which the schedule has this key.
    pub(super) noted: Moment,
}

/// The front of the wait queue: which waiters may send claims.
#[derive(Clone, Copy, Debug)]
pub(super) struct QueueFront {
    /// How many waiters at the front may send claims at the same time.
    together: usize,
    /// How many waiters have to be looked at: all, where a session may hold the key.
    reach: usize,
    /// A claim of a caller that is gone is under way. Its answer concerns all waiters.
    orphan: bool,
}

impl<W: Clone, L: LeaseCell> Key<W, L> {
    pub(super) fn new(name: LockKey) -> Self {
        Self {
            name,
            id: KeyId(0),
            queue: Queue::new(),
            leases: Vec::new(),
            store: InStore::new(),
            noted: Moment::NEVER,
        }
    }

    /// Whether nothing is known of the key, so that it can be forgotten.
    pub(super) fn is_idle(&self) -> bool {
        self.queue.is_empty() && self.leases.is_empty() && self.store.is_settled()
    }

    pub(super) fn join(&mut self, step: &mut Step<'_, W, L>, join: Join<W>) -> (WaiterId, bool) {
        let id = WaiterId(step.id());
        self.detach_requests(step);
        let waiter = self.waiter(step, id, join);
        self.queue.over += usize::from(waiter.is_try);
        self.queue.waiters.push_back(waiter);
        self.advance(step);
        let held = self.leases.iter().any(|lease| lease.end.is_none());
        (id, self.queue.index(id).is_some_and(|index| held || index > 0))
    }

    pub(super) fn waiter(&self, step: &Step<'_, W, L>, id: WaiterId, join: Join<W>) -> Waiter<W> {
        let is_try = join.limit <= step.now;
        Waiter {
            id,
            handle: join.handle,
            session: step.traits(join.member).session,
            member: join.member,
            mode: join.mode,
            options: join.options,
            limit: join.limit,
            is_try,
            is_over: is_try,
            claim_under_way: false,
            next_claim_at: Moment::default(),
            polling: self.polling(),
            failing: BackOff::after_failure(),
            last: None,
        }
    }

    /// Moves requests that single callers poll to tasks of their own: from now on others depend on them, and they must go on
    /// also if their callers are never polled.
    pub(super) fn detach_requests(&mut self, step: &mut Step<'_, W, L>) {
        let claims = self.store.claims.iter_mut().filter_map(PendingClaim::detach);
        let releases = self.store.releases.iter_mut().filter_map(|release| release.by.take());
        step.out.extend(claims.chain(releases).map(Action::Detached));
    }

    pub(super) fn times_up(&mut self, step: &mut Step<'_, W, L>, id: WaiterId) {
        if let Some(index) = self.queue.index(id) {
            self.queue.over += usize::from(!self.queue.waiters[index].is_over);
            self.queue.waiters[index].is_over = true;
            self.give_up_late(step, index);
        } else {
            self.give_up_unconfirmed(step, id);
        }
        self.advance(step);
    }

    /// Dismisses a waiter whose limit has passed and for whom no answer will come in time. True if it was dismissed. Also
    /// applies to a waiter whose task is not polled.
    pub(super) fn give_up_late(&mut self, step: &mut Step<'_, W, L>, index: usize) -> bool {
        let late = |waiter: &&Waiter<W>| step.now >= step.latest(waiter);
        let Some(waiter) = self.queue.waiters.get(index).filter(late) else { return false };
        let last = if waiter.has_claimed() || waiter.last.is_some() {
            waiter.last.clone().filter(|_| self.is_its_turn(step, &self.queue_front(step), index))
        } else {
            // Nothing was asked for this one; but silence to another is no sign that the key is held.
            self.known(step.now).filter(|_| !self.store.claims.iter().any(PendingClaim::is_under_way))
        };
        let outcome = self.outcome(step.now, last.unwrap_or_else(no_answer));
        self.dismiss(step, index, outcome);
        true
    }

    pub(super) fn leave(&mut self, step: &mut Step<'_, W, L>, id: WaiterId) {
        if let Some(index) = self.queue.index(id) {
            self.remove(step, index);
        } else if let Some(asleep) = self.queue.asleep.iter().position(|waiter| waiter.id == id) {
            self.queue.asleep.swap_remove(asleep);
        } else if self.leave_take_over(id) {
            // The grant that it may bring is released.
        } else if let Some(offer) = self.queue.offers.iter().position(|offer| offer.waiter.id == id) {
            let offer = self.queue.offers.remove(offer);
            self.release_guard(step, &offer.guard, None);
        }
        self.advance(step);
    }

    /// Sends the claims that are due, and answers the waiters whose answer is known. Called after every change of the key.
    pub(super) fn advance(&mut self, step: &mut Step<'_, W, L>) {
        let mut front = self.queue_front(step);
        let mut index = 0;
        while index < front.reach {
            match self.turn(step, &front, index) {
                Some(outcome) => {
                    self.dismiss(step, index, outcome);
                    front = self.queue_front(step);
                }
                None => index += 1,
            }
        }
        // The answers for the front of the queue also answer the waiters behind: these must neither overtake it, nor take
        // silence for "held".
        while self.queue.over > 0 && index < self.queue.waiters.len() {
            match self.known(step.now).filter(|_| self.queue.waiters[index].is_over) {
                Some(last_answer) => {
                    let outcome = self.outcome(step.now, last_answer);
                    self.dismiss(step, index, outcome);
                }
                None => index += 1,
            }
        }
        self.subscribe(step);
    }

    /// Sends the claim of a waiter at the front if it is due. Returns an outcome if the waiter ends instead.
    fn turn(&mut self, step: &mut Step<'_, W, L>, front: &QueueFront, index: usize) -> Option<Outcome<L>> {
        let waiter = &self.queue.waiters[index];
        if let Some(reason) = self.lost_under(waiter.member) {
            let error = Error::new(ErrorKind::Lost(reason), "acquire");
            return Some(Outcome::Failed(error.detail("a guard of this session that is still there lost the key")));
        }
        if !self.is_its_turn(step, front, index) {
            let known = self.known(step.now).filter(|_| waiter.is_over);
            return known.map(|last_answer| self.outcome(step.now, last_answer));
        }
        if self.is_in_the_way(step.now, waiter) {
            return waiter.is_over.then(|| self.busy(step.now));
        }
        if self.may_claim(step, front, waiter) {
            self.send_claim(step, index);
        }
        None
    }

    /// What is known of the key: that it is held here, or that a waiter here has its place in the queue of the store, or the last
    /// answer of the store.
    fn known(&self, now: Moment) -> Option<LastAnswer> {
        let kept = self.queue.waiters.front().is_some_and(|first| self.is_in_the_way(now, first));
        let queued =
            |claim: &PendingClaim<W>| claim.for_waiter.is_some() && claim.is_notified() && !claim.is_under_way();
        let is_busy = kept || self.store.claims.iter().any(queued);
        if is_busy { Some(LastAnswer::Busy) } else { self.store.last_answer.clone() }
    }

    pub(super) fn outcome(&self, now: Moment, last_answer: LastAnswer) -> Outcome<L> {
        match last_answer {
            LastAnswer::Busy => self.busy(now),
            LastAnswer::Failed(error) => Outcome::Failed(error),
        }
    }

    /// The outcome "busy", with the remaining lease as far as it is known here.
    pub(super) fn busy(&self, now: Moment) -> Outcome<L> {
        let here = self.leases.iter().filter(|lease| lease.end.is_none()).map(Lease::limit).max();
        let until = here.unwrap_or(self.store.busy_until);
        let known = now < until && until < Moment::NEVER;
        Outcome::Busy(Busy { remaining: known.then(|| until.since(now)) })
    }

    pub(super) fn queue_front(&self, step: &Step<'_, W, L>) -> QueueFront {
        let together = self.together(step);
        let reentrant = self.queue.waiters.front().is_some_and(|first| step.traits(first.member).reentrant);
        let orphan = |claim: &PendingClaim<W>| claim.for_waiter.is_none() && claim.is_under_way();
        QueueFront {
            together,
            reach: if reentrant { self.queue.waiters.len() } else { together },
            orphan: self.store.claims.iter().any(orphan),
        }
    }

    /// How many waiters at the front may send claims at the same time: the first one, or all readers there where readers do
    /// not share a lease.
    pub(super) fn together(&self, step: &Step<'_, W, L>) -> usize {
        let for_itself = |waiter: &&Waiter<W>| waiter.mode == Mode::Shared && step.traits(waiter.member).handoffs == 0;
        let readers = self.queue.waiters.iter().take_while(for_itself).count();
        readers.max(1).min(self.queue.waiters.len())
    }

    /// Whether the waiter may send claims: it is at the front, or acts for the session that holds the key.
    fn is_its_turn(&self, step: &Step<'_, W, L>, front: &QueueFront, index: usize) -> bool {
        index == 0 || index < front.together || {
            let waiter = &self.queue.waiters[index];
            match self.leases.iter().find(|lease| lease.is_exclusive() && lease.is_held(step.now)) {
                Some(lease) => lease.admits(waiter.member, waiter.session),
                None => waiter.session.is_some() && waiter.session == self.store.session,
            }
        }
    }

    /// Whether a lease of this process excludes the waiter, so that a claim would be in vain.
    fn is_in_the_way(&self, now: Moment, waiter: &Waiter<W>) -> bool {
        let keeps = |lease: &Lease<L>| lease.is_exclusive() && lease.is_held(now);
        self.leases.iter().any(|lease| keeps(lease) && !lease.admits(waiter.member, waiter.session))
    }

    fn may_claim(&self, step: &Step<'_, W, L>, front: &QueueFront, waiter: &Waiter<W>) -> bool {
        let due = waiter.is_over || step.now >= self.claims_at(waiter);
        due && !self.is_answered_first(step, front, waiter)
    }

    /// When a waiter sends its next claim, if its wait is not over before.
    fn claims_at(&self, waiter: &Waiter<W>) -> Moment {
        waiter.next_claim_at.max(self.store.yield_until.min(waiter.limit))
    }

    /// Whether the waiter has to wait for another request first: for a claim of its own or of its session, and for one of a
    /// caller that is gone, which concerns all. For a release of this process: the store would answer that another holds the
    /// key, or have the claim queue behind the own lease. And for every release of its session, because a level that joined the
    /// lease before would go on with a lost one.
    fn is_answered_first(&self, step: &Step<'_, W, L>, front: &QueueFront, waiter: &Waiter<W>) -> bool {
        let of_session = |claim: &PendingClaim<W>| claim.member == waiter.member && claim.is_under_way();
        // A waiter at its limit does not wait for the claims of others.
        waiter.claim_under_way || (front.orphan && (!waiter.is_over || waiter.is_try)) || {
            let reentrant = step.traits(waiter.member).reentrant;
            let comes_first = |release: &PendingRelease<W>| {
                let of_session = reentrant && release.member == waiter.member;
                release.is_in_the_way(waiter.mode) && (of_session || !release.has_failed)
            };
            (reentrant && self.store.claims.iter().any(of_session)) || self.store.releases.iter().any(comes_first)
        }
    }

    /// Why a lease of this engine was lost on which guards still exist. No new lease may begin while they exist.
    fn lost_under(&self, member: Member) -> Option<LossReason> {
        self.leases.iter().find_map(|lease| match lease.end {
            Some(End::Lost(reason)) if lease.terms.member == member && lease.is_reentrant() => Some(reason),
            _ => None,
        })
    }

    /// A lease ended here: the key may be free, and the waiters send claims again.
    pub(super) fn freed(&mut self) {
        self.store.changes.freed += 1;
        self.store.last_answer = None;
        self.store.session = None;
        // The store notifies the waiters in its queue, and grants a key that is freed here to the first of them.
        self.claim_anew(|claim| !claim.is_notified());
    }

    /// Lets the waiters that have sent a claim before send one now, except for those whose claim does not need that.
    pub(super) fn claim_anew(&mut self, needed: impl Fn(&PendingClaim<W>) -> bool) {
        let polling = self.polling();
        let spared: Vec<_> =
            self.store.claims.iter().filter(|claim| !needed(claim)).filter_map(|claim| claim.for_waiter).collect();
        for waiter in
            self.queue.waiters.iter_mut().take_while(|waiter| waiter.has_claimed() || waiter.session.is_some())
        {
            if !spared.contains(&waiter.id) {
                (waiter.polling, waiter.next_claim_at) = (polling, Moment::default());
            }
        }
    }

    /// Removes a waiter and gives it this outcome, which is not a grant.
    pub(super) fn dismiss(&mut self, step: &mut Step<'_, W, L>, index: usize, outcome: Outcome<L>) {
        let waiter = self.remove(step, index);
        step.out.push(Action::Wake(waiter.handle, outcome));
    }

    /// Removes a waiter from the queue, and gives up its position in the store queue.
    pub(super) fn remove(&mut self, step: &mut Step<'_, W, L>, index: usize) -> Waiter<W> {
        let Some(mut waiter) = self.queue.waiters.remove(index) else {
            unreachable!("the index is of a waiter in the line")
        };
        self.queue.over -= usize::from(waiter.is_over);
        // The waiter may come back to the queue; its claim under way belongs to no waiter from now on.
        waiter.claim_under_way = false;
        for claim in self.store.claims.iter_mut().filter(|claim| claim.for_waiter == Some(waiter.id)) {
            claim.for_waiter = None;
        }
        let given_up: Vec<_> =
            self.store.claims.extract_if(.., |claim| claim.for_waiter.is_none() && claim.request().is_none()).collect();
        for claim in given_up {
            self.give_up(step, &claim);
        }
        self.take_back_mark(step);
        waiter
    }

    /// The next moment at which the key has to be looked at.
    pub(super) fn next_event(&self, step: &Step<'_, W, L>) -> Moment {
        let front = self.queue_front(step);
        let claims = (0..front.reach).filter(|index| self.is_its_turn(step, &front, *index)).filter_map(|index| {
            let waiter = &self.queue.waiters[index];
            let idle = !self.is_in_the_way(step.now, waiter) && !self.is_answered_first(step, &front, waiter);
            (idle && !waiter.is_over).then(|| self.claims_at(waiter))
        });
        let leases = self.leases.iter().map(Lease::next_event);
        let offers = self.queue.offers.iter().flat_map(|offer| offer.until.into_iter().chain(self.calls_at(offer)));
        let releases = self.store.releases.iter().map(|release| release.again_at);
        let lost = self.store.lost.iter().map(|lost| lost.until);
        let subscribes = self.subscribes(step).map(|(_, at)| at);
        claims
            .chain(self.store.claims.iter().map(PendingClaim::overdue_at))
            .chain(self.store.take_overs.iter().map(PendingTakeOver::overdue_at))
            .chain(leases)
            .chain(offers)
            .chain(releases)
            .chain(lost)
            .chain(subscribes)
            .min()
            .unwrap_or(Moment::NEVER)
    }
}
