//! Attach and downgrade: the store gives a grant to a new owner id, and the answer becomes a guard or goes back.

use super::event::{
    Action, Attach, GuardId, GuardRef, Join, LeaseCell, LeaseId, Member, Outcome, Request, RequestId, WaiterId,
};
use super::grant::too_late;
use super::key::Key;
use super::lease::{FirstLease, GuardEntry, Lease, cap_of};
use super::pending::{DowngradedWriter, PendingTakeOver};
use super::step::Step;
use crate::{Attempt, Claim, Error, ErrorKind, GrantRef, Mode, Result};

impl<W: Clone, L: LeaseCell> Key<W, L> {
    /// Attaches a detached lease: the store replaces its owner, so that no other attach succeeds.
    pub(super) fn attach(&mut self, step: &mut Step<'_, W, L>, attach: Attach<W>) -> WaiterId {
        let Attach { join, grant, number } = attach;
        let owner = step.random.owner(step.now);
        let (ttl, new) = (join.options.ttl, GrantRef { owner, ..grant.clone() });
        let ask = |request| Request::TakeOver(request, grant.clone(), owner, ttl);
        self.take_over(step, join, [grant.clone(), new], number, None, ask)
    }

    /// Downgrades a writer. Its lease ends at once, whatever the store answers. `None` if it is not held any more.
    pub(super) fn downgrade(&mut self, step: &mut Step<'_, W, L>, guard: &GuardRef, join: Join<W>) -> Option<WaiterId> {
        let held = |lease: &&Lease<L>| lease.id == guard.lease && lease.end.is_none();
        let lease = self.leases.iter().find(held)?;
        let (writer, before) =
            (lease.grant(), DowngradedWriter { ttl: lease.terms.ttl, may_be_late: lease.may_be_late });
        self.detach(step, guard);
        let claim = Claim {
            key: self.name.clone(),
            owner: step.random.owner(step.now),
            mode: Mode::Shared,
            ttl: join.options.ttl,
            waits: false,
            label: join.options.label.clone(),
            reason: join.options.reason.clone(),
            lost: None,
        };
        let grants = [writer.clone(), claim.grant(None)];
        let ask = |request| Request::Downgrade(request, writer, claim);
        Some(self.take_over(step, join, grants, 0, Some(before), ask))
    }

    fn take_over(
        &mut self,
        step: &mut Step<'_, W, L>,
        join: Join<W>,
        [old, grant]: [GrantRef; 2],
        number: u16,
        writer: Option<DowngradedWriter>,
        ask: impl FnOnce(RequestId) -> Request,
    ) -> WaiterId {
        let (id, request) = (WaiterId(step.id()), step.request(self.id));
        let (member, options) = (join.member, join.options.clone());
        let waiter = Some(self.waiter(step, id, join));
        let (sent_at, overdue_at) = (step.now, step.overdue(member));
        step.begin(member);
        step.send(member, ask(request));
        self.store.take_overs.push(PendingTakeOver {
            waiter,
            member,
            grant,
            old,
            number,
            options,
            writer,
            request,
            sent_at,
            overdue_at,
        });
        id
    }

    /// The store answered a take-over or downgrade.
    pub(super) fn taken_over(&mut self, step: &mut Step<'_, W, L>, request: RequestId, answer: Result<Attempt>) {
        let Some(index) = self.store.take_overs.iter().position(|pending| pending.request == request) else { return };
        let mut pending = self.store.take_overs.remove(index);
        step.ended(pending.member);
        match answer {
            Ok(Attempt::Granted { epoch }) => {
                pending.grant.epoch = epoch;
                self.begin_taken_over(step, pending);
            }
            Ok(_) => pending.tell_gone(step),
            Err(error) => self.take_over_failed(step, &mut pending, error),
        }
        self.advance(step);
    }

    fn begin_taken_over(&mut self, step: &mut Step<'_, W, L>, mut pending: PendingTakeOver<W>) {
        let traits = *step.traits(pending.member);
        let PendingTakeOver { member, sent_at, .. } = pending;
        let is_attached = pending.writer.is_none();
        if pending.writer.as_ref().is_none_or(|writer| writer.may_be_late) {
            // The old owner releases nothing, and a late claim of it may still be granted.
            self.release_late(step, member, pending.old.clone());
        }
        let first = FirstLease { length: pending.options.ttl, sent_at, ends: traits.leased, from_notification: false };
        if step.now >= first.deadline() {
            self.give_back(step, &pending, false);
            return pending.tell(step, Outcome::Failed(too_late()));
        }
        if self.is_stale(step, member, pending.grant.mode, pending.grant.epoch) {
            self.give_back(step, &pending, false);
            return pending.tell_gone(step);
        }
        let Some(waiter) = pending.waiter.take() else { return self.give_back(step, &pending, false) };
        let PendingTakeOver { grant, number, options, .. } = pending;
        let (id, owner) = (LeaseId(step.id()), grant.owner);
        // The store shows an attached lock with the texts of the original claim.
        let terms = step.terms(member, &options, !is_attached);
        let cap = cap_of(options.max_hold, step.now);
        self.leases.push(Lease::new(id, terms, grant, first, step.now));
        let guard = GuardId(step.id());
        self.offer(step, waiter, id, GuardEntry { id: guard, owner, number, renew: options.renew, cap });
        let offers = self.queue.offers.iter_mut().filter(|offer| offer.guard.guard == guard);
        offers.for_each(|offer| offer.taken_over = true);
    }

    /// Releases what the store may have of the new owner, also when it comes late, and the writer that was to be downgraded.
    fn take_over_failed(&mut self, step: &mut Step<'_, W, L>, pending: &mut PendingTakeOver<W>, error: Error) {
        step.out.push(Action::AttemptFailed(self.name.clone(), error.clone()));
        if error.kind() == ErrorKind::Indeterminate {
            self.give_back(step, pending, true);
        }
        if let Some(DowngradedWriter { ttl, may_be_late }) = pending.writer.take() {
            self.release(step, pending.member, pending.old.clone(), ttl, may_be_late, None);
        }
        pending.tell(step, Outcome::Failed(error));
    }

    fn give_back(&mut self, step: &mut Step<'_, W, L>, pending: &PendingTakeOver<W>, late: bool) {
        self.release(step, pending.member, pending.grant.clone(), pending.options.ttl, late, None);
    }

    /// Treats overdue take-overs as failed: their runtime may not be driven. What a late answer brings is released.
    pub(super) fn give_up_take_overs(&mut self, step: &mut Step<'_, W, L>) {
        let now = step.now;
        while let Some(index) = self.store.take_overs.iter().position(|pending| now >= pending.overdue_at()) {
            let mut pending = self.store.take_overs.remove(index);
            let operation = if pending.writer.is_some() { "downgrade" } else { "attach" };
            let error = Error::unanswered(operation);
            self.take_over_failed(step, &mut pending, error);
            self.store.take_overs.push(pending);
        }
    }

    /// The caller of an attach or downgrade is gone. True if `id` was one.
    pub(super) fn leave_take_over(&mut self, id: WaiterId) -> bool {
        let its = |pending: &&mut PendingTakeOver<W>| pending.waiter.as_ref().is_some_and(|waiter| waiter.id == id);
        self.store.take_overs.iter_mut().find(its).is_some_and(|pending| pending.waiter.take().is_some())
    }

    /// The engine is closed: its callers of attach and downgrade get no guard.
    pub(super) fn close_take_overs(&mut self, step: &mut Step<'_, W, L>, member: Member) {
        for pending in self.store.take_overs.iter_mut().filter(|pending| pending.member == member) {
            pending.tell(step, Outcome::Failed(Error::new(ErrorKind::Closed, "take over")));
        }
    }
}
