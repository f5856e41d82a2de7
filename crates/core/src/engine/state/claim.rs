//! Claims: when a waiter sends one, and what its answer means for the waiters of the key.

use std::mem::replace;
use std::time::Duration;

use super::backoff::BackOff;
use super::event::{Action, End, LeaseCell, Outcome, Request, RequestId, WaiterId};
use super::key::Key;
use super::lease::{FirstLease, Lease};
use super::pending::{PendingClaim, Phase, QueuePosition};
use super::step::Step;
use super::waiter::{Changes, LastAnswer};
use crate::clock::Moment;
use crate::{Attempt, Claim, Error, ErrorKind, GrantRef, LossReason, Mode, Result, SessionId};

/// For how long it is tried to take the mark of a waiting writer back. No store keeps one for longer.
const MARK: Duration = Duration::from_secs(2);

impl<W: Clone, L: LeaseCell> Key<W, L> {
    /// Sends a claim for this waiter. The owner id of its last claim is used again as long as the store may have something
    /// of it.
    pub(super) fn send_claim(&mut self, step: &mut Step<'_, W, L>, index: usize) {
        let request = step.request(self.id);
        let alone = self.queue.waiters.len() == 1;
        let waiter = &mut self.queue.waiters[index];
        waiter.claim_under_way = true;
        let waiter = &self.queue.waiters[index];
        let known = self.store.claims.iter().position(|claim| claim.for_waiter == Some(waiter.id));
        let mut claim = match known.map(|known| self.store.claims.remove(known)) {
            Some(claim) => claim,
            None => PendingClaim::new(waiter, step),
        };
        // A claim that is sent again may have been granted before, with an epoch older than the waiters that came in
        // between.
        if !claim.is_repeated() {
            claim.join_limit = request.1;
        }
        claim.sent_at = step.now;
        claim.seen = self.store.changes;
        let for_waiter = Some(waiter.handle.clone());
        let (by, overdue_at) = (for_waiter.clone().filter(|_| alone), step.overdue(claim.member));
        claim.phase = Phase::Sent { request, by, overdue_at, message: None };
        let sent = Claim {
            key: self.name.clone(),
            owner: claim.owner,
            mode: claim.mode,
            ttl: claim.options.ttl,
            waits: !waiter.is_over,
            label: claim.options.label.clone(),
            reason: claim.options.reason.clone(),
            lost: self.store.lost_epoch(claim.member),
        };
        if step.traits(claim.member).marks && sent.waits && sent.mode == Mode::Exclusive {
            self.store.mark = Some((claim.member, claim.owner));
        }
        step.begin(claim.member);
        step.send_by(claim.member, Request::Claim(request, sent), for_waiter, alone);
        self.store.claims.push(claim);
    }

    /// The store answered a claim.
    pub(super) fn answered(&mut self, step: &mut Step<'_, W, L>, request: RequestId, answer: Result<Attempt>) {
        let Some(index) = self.store.claims.iter().position(|claim| claim.request() == Some(request)) else { return };
        let mut claim = self.store.claims.remove(index);
        step.ended(claim.member);
        let Phase::Sent { message, .. } = replace(&mut claim.phase, Phase::Placed) else {
            return self.answered_too_late(step, &claim, &answer);
        };
        self.claim_has_ended(claim.for_waiter);
        if answer.is_ok() {
            step.took(claim.member, claim.sent_at);
        }
        match answer {
            Ok(Attempt::Granted { epoch }) => {
                let first = claim.first_lease(step.now, step.traits(claim.member).leased);
                self.grant(step, claim, epoch, first);
            }
            Ok(Attempt::Busy { retry_in }) => self.found_busy(step, &claim, None, retry_in),
            Ok(Attempt::HeldBy { session, retry_in }) => self.found_busy(step, &claim, Some(session), retry_in),
            Ok(Attempt::Queued { epoch_of_holder, latest_epoch, retry_in, notifies, lease }) => {
                let length = claim.options.ttl.min(lease);
                let lease = FirstLease { length, ..claim.fresh_lease(step.traits(claim.member).leased) };
                let epochs = epoch_of_holder.map(|before| (before, latest_epoch.unwrap_or(u64::MAX)));
                claim.position = Some(QueuePosition { epochs, lease, notifies });
                match claim.notified_lease(message, step.now) {
                    Some(first) => self.grant(step, claim, message, Some(first)),
                    None => self.queued(step, claim, retry_in),
                }
            }
            Err(error) => match claim.notified_lease(message, step.now) {
                Some(first) => {
                    claim.unanswered |= error.kind() == ErrorKind::Indeterminate;
                    self.grant(step, claim, message, Some(first));
                }
                None => self.failed(step, claim, error),
            },
        }
        self.take_back_mark(step);
        self.advance(step);
    }

    fn claim_has_ended(&mut self, for_waiter: Option<WaiterId>) {
        let polling = self.polling();
        if let Some(index) = for_waiter.and_then(|for_waiter| self.queue.index(for_waiter)) {
            let waiter = &mut self.queue.waiters[index];
            waiter.claim_under_way = false;
            // The key may have been subscribed to since the waiter joined.
            if waiter.last.is_none() {
                waiter.polling = polling;
            }
        }
    }

    /// Treats overdue claims as failed, so that they keep no waiter waiting: their runtime may not be driven.
    pub(super) fn give_up_overdue(&mut self, step: &mut Step<'_, W, L>) {
        let now = step.now;
        let overdue = |claim: &PendingClaim<W>| now >= claim.overdue_at();
        while let Some(index) = self.store.claims.iter().position(overdue) {
            let mut claim = self.store.claims.remove(index);
            if let Some(request) = claim.request() {
                let phase = Phase::Abandoned(request);
                self.store.claims.push(PendingClaim { for_waiter: None, phase, ..claim.clone() });
            }
            claim.phase = Phase::Placed;
            self.claim_has_ended(claim.for_waiter);
            let (for_waiter, error) = (claim.for_waiter, Error::unanswered("acquire"));
            self.failed(step, claim, error);
            self.is_not_driven(step, for_waiter);
        }
    }

    /// Releases what an abandoned claim won after all, unless its owner id has sent another claim or holds a lease.
    fn answered_too_late(&mut self, step: &mut Step<'_, W, L>, claim: &PendingClaim<W>, answer: &Result<Attempt>) {
        let asks = self.store.claims.iter().any(|other| other.owner == claim.owner);
        let holds = self.leases.iter().flat_map(|lease| &lease.guards).any(|guard| guard.owner == claim.owner);
        if !asks && !holds && matches!(answer, Ok(Attempt::Granted { .. } | Attempt::Queued { .. })) {
            let grant = claim.grant(&self.name, None);
            self.release(step, claim.member, grant, claim.options.ttl, false, None);
        }
        self.advance(step);
    }

    fn found_busy(
        &mut self,
        step: &mut Step<'_, W, L>,
        claim: &PendingClaim<W>,
        session: Option<SessionId>,
        retry_in: Option<Duration>,
    ) {
        self.store.last_answer = Some(LastAnswer::Busy);
        self.store.busy_until = retry_in.map_or(Moment::default(), |left| step.now.plus(left));
        self.store.session = session;
        if session.is_some() && session == step.traits(claim.member).session {
            self.store.is_left(step.now, claim.member, retry_in.unwrap_or(claim.options.ttl));
        }
        // A session that joins its lease and finds that another holds the key has lost it.
        let entered = |lease: &Lease<L>| lease.admits(claim.member, None) && lease.since <= claim.sent_at;
        if let Some(lease) = self.leases.iter().find(|lease| entered(lease) && lease.end.is_none()) {
            let lease = lease.id;
            self.end(step, lease, End::Lost(LossReason::Stolen));
        }
        let (for_waiter, seen) = (claim.for_waiter, claim.seen);
        self.give_up(step, claim);
        self.wait_on(step, for_waiter, retry_in, seen, false);
    }

    fn queued(&mut self, step: &mut Step<'_, W, L>, claim: PendingClaim<W>, retry_in: Duration) {
        self.store.last_answer = Some(LastAnswer::Busy);
        let (for_waiter, seen, notifies) = (claim.for_waiter, claim.seen, claim.is_notified());
        match for_waiter.and_then(|for_waiter| self.queue.index(for_waiter)) {
            Some(_) => self.store.claims.push(claim),
            None => self.give_up(step, &claim),
        }
        self.wait_on(step, for_waiter, Some(retry_in), seen, notifies);
    }

    /// Another holds the key: the waiter goes on waiting, or ends if this was its last answer.
    fn wait_on(
        &mut self,
        step: &mut Step<'_, W, L>,
        for_waiter: Option<WaiterId>,
        retry_in: Option<Duration>,
        seen: Changes,
        notifies: bool,
    ) {
        let Some(index) = for_waiter.and_then(|for_waiter| self.queue.index(for_waiter)) else { return };
        if self.queue.waiters[index].is_over {
            // What the store has may be this process's own: nobody else need hold the key.
            let own = self.fails_to_give_back(self.queue.waiters[index].mode);
            let answer = if own { Outcome::Failed(unreleased()) } else { self.busy(step.now) };
            return self.dismiss(step, index, answer);
        }
        self.store.wants_notifications = true;
        let before = self.store.subscription.state;
        self.subscribe(step);
        let polling = self.polling();
        let (subscribes, changes) = (before != self.store.subscription.state, self.store.changes);
        let waiter = &mut self.queue.waiters[index];
        if subscribes {
            waiter.polling = polling;
        }
        waiter.failing = BackOff::after_failure();
        waiter.last = Some(LastAnswer::Busy);
        let pause = waiter.polling.next(step.random, retry_in);
        // A notification that came while the claim was under way may be newer than the answer.
        let older = changes.notified != seen.notified || (!notifies && changes.freed != seen.freed);
        waiter.next_claim_at = if older { self.store.subscription.heeds(step.now) } else { step.now.plus(pause) };
    }

    pub(super) fn failed(&mut self, step: &mut Step<'_, W, L>, mut claim: PendingClaim<W>, error: Error) {
        claim.unanswered |= error.kind() == ErrorKind::Indeterminate;
        let (for_waiter, transient) = (claim.for_waiter, error.is_transient());
        let keeps = claim.is_repeated() && step.traits(claim.member).queues;
        step.out.push(Action::AttemptFailed(self.name.clone(), error.clone()));
        match for_waiter.and_then(|for_waiter| self.queue.index(for_waiter)) {
            // If it gave its position up, it would come back at the end of the store queue.
            Some(index) if transient && keeps && !self.queue.waiters[index].is_over => self.store.claims.push(claim),
            _ => self.give_up(step, &claim),
        }
        self.store.last_answer = Some(LastAnswer::Failed(error.clone()));
        let Some(index) = for_waiter.and_then(|for_waiter| self.queue.index(for_waiter)) else { return };
        let waiter = &mut self.queue.waiters[index];
        if !transient || waiter.is_over {
            return self.dismiss(step, index, Outcome::Failed(error));
        }
        waiter.last = Some(LastAnswer::Failed(error));
        self.claim_later(step, for_waiter);
    }

    /// Schedules the next claim of a waiter after a failure.
    pub(super) fn claim_later(&mut self, step: &mut Step<'_, W, L>, for_waiter: Option<WaiterId>) {
        if let Some(index) = for_waiter.and_then(|for_waiter| self.queue.index(for_waiter)) {
            let waiter = &mut self.queue.waiters[index];
            waiter.next_claim_at = step.now.plus(waiter.failing.next(step.random, None));
        }
    }

    /// Takes back the mark of waiting writers, once none of them waits here any more: it would keep a free key from others for as
    /// long as it lasts.
    pub(super) fn take_back_mark(&mut self, step: &mut Step<'_, W, L>) {
        let Some((member, owner)) = self.store.mark else { return };
        let waits = self.queue.waiters.iter().any(|waiter| waiter.mode == Mode::Exclusive && !waiter.is_try);
        let asks = self.store.claims.iter().any(|claim| claim.owner == owner && claim.is_under_way());
        if !waits && !asks {
            self.store.mark = None;
            let grant = GrantRef { key: self.name.clone(), owner, mode: Mode::Exclusive, epoch: None };
            self.release(step, member, grant, MARK, false, None);
        }
    }

    /// Releases what the store may have of a claim.
    pub(super) fn give_up(&mut self, step: &mut Step<'_, W, L>, claim: &PendingClaim<W>) {
        if claim.is_repeated() {
            let grant = claim.grant(&self.name, None);
            self.release(step, claim.member, grant, claim.options.ttl, claim.unanswered, None);
        }
    }
}

fn unreleased() -> Error {
    Error::new(ErrorKind::Indeterminate, "acquire").detail("this process's own release of the key got no answer")
}
