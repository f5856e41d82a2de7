//! Grants: how one becomes a lease with a guard that is offered to a waiter, or goes back to the store.

use super::event::{Action, Collected, End, GuardRef, LeaseCell, LeaseId, Member, Outcome, WaiterId};
use super::key::Key;
use super::lease::{FirstLease, GuardEntry, Lease};
use super::pending::PendingClaim;
use super::step::Step;
use super::waiter::{LastAnswer, Offer, Waiter, no_answer};
use crate::{Error, ErrorKind, GrantRef, LossReason, Mode, OwnerId};

impl<W: Clone, L: LeaseCell> Key<W, L> {
    /// The store granted a claim.
    pub(super) fn grant(
        &mut self,
        step: &mut Step<'_, W, L>,
        mut claim: PendingClaim<W>,
        epoch: Option<u64>,
        first: Option<FirstLease>,
    ) {
        if claim.mode == Mode::Exclusive {
            // Its mark became the grant: to take it back would release the key.
            self.store.mark = None;
        }
        let grant = claim.grant(&self.name, epoch);
        let ttl = claim.options.ttl;
        if let Some(error) = self.objection(step, &claim, epoch, first) {
            self.release(step, claim.member, grant, ttl, claim.unanswered, None);
            return self.refused(step, PendingClaim { unanswered: false, position: None, ..claim }, error);
        }
        // Only now: waiters whose offer was lost with an older lease are back in the queue.
        let next_waiter = self.queue.waiters.front().filter(|first| claim.goes_to(first)).map(|_| 0);
        let recipient = claim.for_waiter.and_then(|for_waiter| self.queue.index(for_waiter)).or(next_waiter);
        let Some(index) = recipient else {
            return self.release(step, claim.member, grant, ttl, claim.unanswered, None);
        };
        // The next waiter wants the same, but its max hold is not known to the store.
        claim.options.max_hold = self.queue.waiters[index].options.max_hold;
        if step.traits(claim.member).reentrant
            && let Some(lease) = self.leases.iter().find(|lease| lease.terms.member == claim.member)
        {
            let (id, joins) = (lease.id, lease.is_held(step.now) && lease.epoch() == epoch);
            if joins {
                return self.reenter(step, index, &claim, id);
            }
            // The store began a new lease: it had not the outer one any more when it granted this claim.
            let stolen = Error::new(ErrorKind::Lost(LossReason::Stolen), "acquire");
            self.dismiss(step, index, Outcome::Failed(stolen));
            self.end(step, id, End::Lost(LossReason::Stolen));
            return self.release(step, claim.member, grant, ttl, claim.unanswered, None);
        }
        self.begin(step, index, &claim, grant, first);
    }

    /// Treats the claim as failed. Its release does not let the waiters send a claim earlier: the store would grant the same
    /// again.
    fn refused(&mut self, step: &mut Step<'_, W, L>, claim: PendingClaim<W>, error: Error) {
        let for_waiter = claim.for_waiter;
        self.failed(step, claim, error);
        if let Some(index) = for_waiter.and_then(|for_waiter| self.queue.index(for_waiter)) {
            self.store.yield_until = self.store.yield_until.max(self.queue.waiters[index].next_claim_at);
        }
    }

    /// Why this grant must not become a guard.
    fn objection(
        &mut self,
        step: &mut Step<'_, W, L>,
        claim: &PendingClaim<W>,
        epoch: Option<u64>,
        first: Option<FirstLease>,
    ) -> Option<Error> {
        if first.is_some_and(|first| step.now >= first.deadline()) {
            // Another may hold the key by now; a guard would be lost from the beginning.
            return Some(too_late());
        }
        // The claim was under way when that epoch was lost, or the store ignores `Claim::lost`.
        if epoch.is_some() && epoch <= self.store.lost_epoch(claim.member) {
            return Some(unavailable("the store still has the lease that this session lost"));
        }
        let is_stale = self.is_stale(step, claim.member, claim.mode, epoch);
        is_stale.then(|| unavailable("the store granted an older number than that of a lease which is held here"))
    }

    /// If two leases exclude each other, the older one is lost. True if that is the one that was just granted.
    pub(super) fn is_stale(
        &mut self,
        step: &mut Step<'_, W, L>,
        member: Member,
        mode: Mode,
        epoch: Option<u64>,
    ) -> bool {
        let session = step.traits(member).session;
        // Another engine of the same session has the lease that this claim joined in the store.
        let joined = |lease: &Lease<L>| lease.admits(member, session) && lease.epoch() == epoch;
        let excludes = |lease: &&Lease<L>| {
            let exclusive = lease.is_exclusive() || mode == Mode::Exclusive;
            exclusive && lease.end.is_none() && !lease.admits(member, None) && !joined(lease)
        };
        let others: Vec<_> = self.leases.iter().filter(excludes).map(|lease| (lease.id, lease.epoch())).collect();
        let stale = others.iter().any(|(_, theirs)| *theirs >= epoch);
        if !stale {
            for (lease, _) in others {
                self.end(step, lease, End::Lost(LossReason::Stolen));
            }
        }
        stale
    }

    fn reenter(&mut self, step: &mut Step<'_, W, L>, index: usize, claim: &PendingClaim<W>, lease: LeaseId) {
        if let Some(lease) = self.leases.iter_mut().find(|known| known.id == lease) {
            lease.reentered(claim.sent_at, claim.options.ttl);
            lease.may_be_late |= claim.unanswered;
        }
        let entry = claim.entry(step);
        let waiter = self.remove(step, index);
        self.offer(step, waiter, lease, entry);
        if let Some(lease) = self.leases.iter().find(|known| known.id == lease) {
            // The max hold of another level may end it sooner.
            step.out.push(Action::Limit(lease.cell.clone(), lease.limit()));
        }
    }

    fn begin(
        &mut self,
        step: &mut Step<'_, W, L>,
        index: usize,
        claim: &PendingClaim<W>,
        grant: GrantRef,
        known: Option<FirstLease>,
    ) {
        let id = LeaseId(step.id());
        let options = &claim.options;
        let ends = step.traits(claim.member).leased;
        let unknown = FirstLease { length: options.ttl, sent_at: step.now, ends, from_notification: false };
        let first = known.unwrap_or(unknown);
        let terms = step.terms(claim.member, options, true);
        let mut lease = Lease::new(id, terms, grant, first, step.now);
        lease.may_be_late = claim.unanswered;
        let shared = !lease.is_exclusive();
        let entry = claim.entry(step);
        let waiter = self.remove(step, index);
        self.store.subscription.vain = 0;
        self.leases.push(lease);
        if known.is_none() || (!options.renew && first.is_provisional(options.ttl)) {
            // The length of the lease is unknown, or nothing renews it later: a renewal confirms it before the waiter is
            // told.
            return self.confirm(step, waiter, id, entry);
        }
        self.offer(step, waiter, id, entry);
        if shared {
            self.share(step, id, claim);
        } else {
            self.store.last_answer = Some(LastAnswer::Busy);
        }
    }

    /// The wait of a caller reaches its limit while its grant is being confirmed.
    pub(super) fn give_up_unconfirmed(&mut self, step: &mut Step<'_, W, L>, id: WaiterId) {
        let its = |offer: &&mut Offer<W>| offer.waiter.id == id && offer.until.is_none();
        let Some(offer) = self.queue.offers.iter_mut().find(its) else { return };
        offer.waiter.is_over = true;
        let (lease, waiter) = (offer.guard.lease, &offer.waiter);
        if step.now >= step.latest(waiter) {
            // The waiter goes back to the queue when the lease ends.
            self.end(step, lease, End::Released);
            if let Some(index) = self.queue.index(id) {
                let outcome = self.outcome(step.now, no_answer());
                self.dismiss(step, index, outcome);
            }
        }
    }

    fn confirm(&mut self, step: &mut Step<'_, W, L>, waiter: Waiter<W>, id: LeaseId, entry: GuardEntry) {
        let Some(lease) = self.leases.iter_mut().find(|lease| lease.id == id) else { return };
        let guard = lease.granted(self.id, &entry).guard;
        lease.guards.push(entry);
        self.queue.offers.push(Offer::unconfirmed(waiter, guard));
        self.renew_now(step, id, None);
    }

    /// Offers a guard on this lease to a waiter that was removed from the queue.
    pub(super) fn offer(&mut self, step: &mut Step<'_, W, L>, waiter: Waiter<W>, lease: LeaseId, entry: GuardEntry) {
        let Some(lease) = self.leases.iter_mut().find(|known| known.id == lease) else { return };
        let granted = lease.granted(self.id, &entry);
        lease.guards.push(entry);
        let mut offer = Offer::unconfirmed(waiter, granted.guard);
        offer.begin(lease, step.now, self.queue.vain);
        step.out.push(Action::Wake(offer.waiter.handle.clone(), Outcome::Granted(granted)));
        self.queue.offers.push(offer);
    }

    /// Withdraws the offers on a lease. A waiter that was told of one is back in the queue when it is polled: one that never is would
    /// ask for the key and lose it to its max hold again and again. Returns the owner ids of the offers.
    pub(super) fn withdraw(&mut self, step: &mut Step<'_, W, L>, lease: &mut Lease<L>) -> Vec<OwnerId> {
        let mut owners = Vec::new();
        let withdrawn: Vec<_> = self.queue.offers.extract_if(.., |offer| offer.guard.lease == lease.id).collect();
        for offer in withdrawn {
            let its = lease.guards.iter().position(|entry| entry.id == offer.guard.guard);
            owners.extend(its.map(|index| lease.guards.remove(index).owner));
            match offer {
                Offer { taken_over: true, .. } => {}
                Offer { until: None, waiter, .. } => self.back_in_line(waiter),
                Offer { waiter, .. } => self.sleeps(step, waiter),
            }
        }
        owners
    }

    /// Puts a waiter back to its place in the queue.
    pub(super) fn back_in_line(&mut self, waiter: Waiter<W>) {
        self.queue.over += usize::from(waiter.is_over);
        let index = self.queue.waiters.partition_point(|other| other.id < waiter.id);
        self.queue.waiters.insert(index, waiter);
    }

    /// A waiter collects the guard that it was offered.
    pub(super) fn collect(&mut self, id: WaiterId, guard: &GuardRef) -> Collected {
        let offered = |offer: &Offer<W>| offer.waiter.id == id && offer.guard == *guard && offer.until.is_some();
        match self.queue.offers.iter().position(offered) {
            Some(offer) => {
                self.queue.offers.swap_remove(offer);
                self.queue.vain = 0;
                Collected::Yes
            }
            None if self.queue.index(id).is_some() => Collected::NotYet,
            None => {
                let mut others = self.queue.asleep.iter().chain(self.queue.offers.iter().map(|offer| &offer.waiter));
                if others.any(|waiter| waiter.id == id) { Collected::NotYet } else { Collected::TooLate }
            }
        }
    }
}

pub(super) fn too_late() -> Error {
    unavailable("the grant came after its lease ran out")
}

fn unavailable(why: &str) -> Error {
    Error::new(ErrorKind::Unavailable, "acquire").detail(why)
}
