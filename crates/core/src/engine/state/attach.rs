use super::event::{Action, Attach, GuardId, LeaseCell, LeaseId, Member, Outcome, Request, RequestId, WaiterId};
use super::grant::too_late;
use super::key::{Key, Waiter};
use super::lease::{FirstLease, Lease, Standing, cap_of};
use super::rules::{Rule, left_out};
use super::step::Step;
use crate::clock::Moment;
use crate::{Error, ErrorKind, GrantRef, Held, LockOptions, Result};

/// A detached lease that the store is asked to give to a new owner.
///
/// It belongs to its key: when nobody waits for the answer any more, what it brings goes back to the store.
#[derive(Clone, Debug)]
pub(super) struct PendingAttach<W> {
    /// Who is told; `None` when that caller is gone, or was told that there is no answer.
    pub(super) waiter: Option<Waiter<W>>,
    pub(super) member: Member,
    /// With the new owner.
    pub(super) grant: GrantRef,
    pub(super) number: u16,
    pub(super) options: LockOptions,
    pub(super) request: RequestId,
    pub(super) sent_at: Moment,
    pub(super) overdue_at: Moment,
}

impl<W> PendingAttach<W> {
    /// When its answer is waited for no more.
    pub(super) fn overdue_at(&self) -> Moment {
        if self.waiter.is_some() { self.overdue_at } else { Moment::NEVER }
    }
}

impl<W: Clone, L: LeaseCell> Key<W, L> {
    /// A caller wants to go on with a lease that was detached. The owner changes in the store, so that nobody else can.
    pub(super) fn attach(&mut self, step: &mut Step<'_, W, L>, attach: Attach<W>) -> WaiterId {
        let Attach { join, grant, number } = attach;
        let (id, request) = (WaiterId(step.id()), RequestId(step.id()));
        let (member, options) = (join.member, join.options.clone());
        let owner = if left_out(Rule::OwnerOfItsOwn) { grant.owner } else { step.chance.owner() };
        let waiter = Some(self.waiter(step, id, join));
        let overdue_at = step.overdue(member);
        step.begin(member);
        step.send(member, Request::TakeOver(request, grant.clone(), owner, options.ttl));
        let grant = GrantRef { owner, ..grant };
        let sent_at = step.now;
        self.attaches.push(PendingAttach { waiter, member, grant, number, options, request, sent_at, overdue_at });
        id
    }

    /// The store answered whether it has the new owner.
    pub(super) fn taken_over(&mut self, step: &mut Step<'_, W, L>, request: RequestId, answer: Result<Held>) {
        let Some(index) = self.attaches.iter().position(|attach| attach.request == request) else { return };
        let mut attach = self.attaches.remove(index);
        step.ended(attach.member);
        match answer {
            Ok(Held::Yes) => self.attached(step, attach),
            Ok(Held::No | Held::Forced) => tell(step, &mut attach, Outcome::Busy),
            Err(error) => self.attach_failed(step, &mut attach, error),
        }
        self.advance(step);
    }

    fn attached(&mut self, step: &mut Step<'_, W, L>, mut attach: PendingAttach<W>) {
        let traits = *step.traits(attach.member);
        let PendingAttach { member, sent_at, .. } = attach;
        let first = FirstLease { length: attach.options.ttl, sent_at, ends: traits.leased, told: false };
        if step.now >= first.deadline() {
            self.give_back(step, &attach, false);
            return tell(step, &mut attach, Outcome::Failed(too_late()));
        }
        if self.is_stale(step, member, attach.grant.mode, attach.grant.tenure) {
            self.give_back(step, &attach, false);
            return tell(step, &mut attach, Outcome::Busy);
        }
        let Some(waiter) = attach.waiter.take() else { return self.give_back(step, &attach, false) };
        let PendingAttach { grant, number, options, .. } = attach;
        let (id, owner) = (LeaseId(step.id()), grant.owner);
        let lease = Lease::new(id, member, &traits, grant, &options, first, step.now);
        let cap = cap_of(&options, step.now);
        self.leases.push(Box::new(lease));
        let guard = GuardId(step.id());
        self.offer(step, waiter, id, Standing { id: guard, owner, number, renew: options.renew, cap });
        let offers = self.offers.iter_mut().filter(|offer| offer.guard.guard == guard);
        offers.for_each(|offer| offer.attached = true);
    }

    /// Whatever an answer that is missing, or an earlier sending, may have brought is given back, also when it comes late.
    fn attach_failed(&mut self, step: &mut Step<'_, W, L>, attach: &mut PendingAttach<W>, error: Error) {
        step.out.push(Action::AttemptFailed(self.name.clone(), error.clone()));
        if error.kind() == ErrorKind::Indeterminate {
            self.give_back(step, attach, true);
        }
        tell(step, attach, Outcome::Failed(error));
    }

    fn give_back(&mut self, step: &mut Step<'_, W, L>, attach: &PendingAttach<W>, late: bool) {
        if !left_out(Rule::AttachedGoesBack) {
            self.release(step, attach.member, attach.grant.clone(), attach.options.ttl, late, None);
        }
    }

    /// Those that get no answer, as on a runtime that rests. What comes late is given back.
    pub(super) fn give_up_attaches(&mut self, step: &mut Step<'_, W, L>) {
        let now = step.now;
        while let Some(index) = self.attaches.iter().position(|attach| now >= attach.overdue_at()) {
            let mut attach = self.attaches.remove(index);
            let error = Error::new(ErrorKind::Indeterminate, "adopt").detail("the store gave no answer");
            self.attach_failed(step, &mut attach, error);
            self.attaches.push(attach);
        }
    }

    /// A caller that attaches is gone. True if it was one.
    pub(super) fn leave_attach(&mut self, id: WaiterId) -> bool {
        let its = |attach: &&mut PendingAttach<W>| attach.waiter.as_ref().is_some_and(|waiter| waiter.id == id);
        self.attaches.iter_mut().find(its).is_some_and(|attach| attach.waiter.take().is_some())
    }

    /// The engine is closed: nobody there is given a guard any more.
    pub(super) fn close_attaches(&mut self, step: &mut Step<'_, W, L>, member: Member) {
        for attach in self.attaches.iter_mut().filter(|attach| attach.member == member) {
            tell(step, attach, Outcome::Failed(Error::new(ErrorKind::Closed, "adopt")));
        }
    }
}

fn tell<W, L>(step: &mut Step<'_, W, L>, attach: &mut PendingAttach<W>, outcome: Outcome<L>) {
    let told = attach.waiter.take().map(|waiter| Action::Wake(waiter.handle, outcome));
    step.out.extend(told);
}
