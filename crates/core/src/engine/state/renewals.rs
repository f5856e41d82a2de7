//! Renewals: when they are due, how they are sent in batches, and what an answer means.

use std::mem::take;
use std::time::Duration;

use super::event::{Action, Batch, BatchId, End, KeyId, LeaseCell, LeaseId, Outcome, Request};
use super::grant::too_late;
use super::key::Key;
use super::lease::Lease;
use super::step::Step;
use super::waiter::Offer;
use crate::clock::Moment;
use crate::{Error, ErrorKind, LeaseStatus, LossReason, Renewal, Result};

impl Batch {
    pub(super) fn new(id: BatchId, sent_at: Moment) -> Self {
        Self { id, sent_at, leases: Vec::new(), keys: Vec::new(), renewals: Vec::new(), within: Duration::MAX }
    }

    fn push<L: LeaseCell>(&mut self, key: KeyId, lease: &mut Lease<L>) {
        let ttl = lease.terms.ttl;
        // A quarter of the lease, so that there is time for another renewal before it ends.
        self.within = self.within.min(ttl / 4);
        self.leases.push(lease.id);
        self.keys.push(key);
        self.renewals.push(Renewal { grant: lease.grant(), ttl });
        lease.asks(self.id, self.sent_at);
    }

    /// The answers, filled up with "unknown" where the store gave none.
    pub(crate) fn answered(&self, mut answers: Vec<Result<LeaseStatus>>) -> Vec<Result<LeaseStatus>> {
        answers.resize_with(self.renewals.len(), || Err(Error::new(ErrorKind::Indeterminate, "renew")));
        answers
    }

    /// Moves the batch out.
    pub(crate) fn take(&mut self) -> Self {
        let (leases, keys) = (take(&mut self.leases), take(&mut self.keys));
        Self { leases, keys, renewals: take(&mut self.renewals), ..*self }
    }
}

impl<W: Clone, L: LeaseCell> Key<W, L> {
    /// Does what is due on this key. Renewals go into batches over all keys.
    pub(super) fn tick(&mut self, step: &mut Step<'_, W, L>) {
        let now = step.now;
        self.take_back_untaken(step);
        self.call_others(step);
        for lease in self.leases.iter_mut().filter(|lease| lease.end.is_none()) {
            // If another renewal is still under way, its late answer counts, too.
            if now >= lease.next_renewal() {
                step.renew(self.id, lease);
            }
        }
        self.give_up_overdue(step);
        self.give_up_take_overs(step);
        self.send_releases(step);
        self.advance(step);
    }

    /// Passes offers that were not collected in time to the next waiter: a caller that is not polled must not keep the key
    /// from others.
    fn take_back_untaken(&mut self, step: &mut Step<'_, W, L>) {
        let now = step.now;
        let untaken = |offer: &Offer<W>| offer.until.is_some_and(|until| now >= until);
        while let Some(index) = self.queue.offers.iter().position(untaken) {
            self.take_back(step, index);
        }
    }

    /// Sends one renewal at once. False if the lease is not held any more.
    pub(super) fn renew_now(&mut self, step: &mut Step<'_, W, L>, id: LeaseId, by: Option<W>) -> bool {
        let lease = self.leases.iter_mut().find(|lease| lease.id == id && lease.end.is_none());
        let Some(lease) = lease else { return false };
        let mut batch = Batch::new(step.batch(), step.now);
        batch.push(self.id, lease);
        step.send_by(lease.terms.member, Request::Renew(batch), by, false);
        true
    }

    /// The store answered a renewal. An error means "unknown" and is retried until the deadline; only the answer that the
    /// store does not have the owner is a loss.
    pub(super) fn renewed(
        &mut self,
        step: &mut Step<'_, W, L>,
        batch: BatchId,
        sent_at: Moment,
        id: LeaseId,
        answer: Result<LeaseStatus>,
    ) {
        let Some(lease) = self.leases.iter_mut().find(|lease| lease.id == id && lease.end.is_none()) else { return };
        let is_latest = lease.renewal == Some(batch);
        if is_latest {
            lease.renewal = None;
        }
        let unconfirmed = self.queue.offers.iter().find(|offer| offer.until.is_none() && offer.guard.lease == id);
        let unconfirmed = unconfirmed.map(|offer| offer.waiter.id);
        match answer {
            Ok(LeaseStatus::Held) => {
                lease.renewed(sent_at);
                step.out.push(Action::Limit(lease.cell.clone(), lease.limit()));
                self.confirmed(step, id);
            }
            answer if unconfirmed.is_some() => {
                // No caller was told of this grant.
                let failed = answer.err().unwrap_or_else(too_late);
                step.out.push(Action::AttemptFailed(self.name.clone(), failed));
                self.end(step, id, End::Released);
                self.claim_later(step, unconfirmed);
            }
            Ok(LeaseStatus::NotHeld) => self.end(step, id, End::Lost(LossReason::Stolen)),
            Ok(LeaseStatus::ForceReleased) => self.end(step, id, End::Lost(LossReason::ForceReleased)),
            Err(_) if is_latest => {
                let pause = (lease.terms.ttl / 12).clamp(Duration::from_millis(2), Duration::from_secs(1));
                lease.next_renewal = step.now.plus(step.random.jittered(pause));
            }
            Err(_) => {}
        }
        self.advance(step);
    }

    /// Tells the waiters of a lease that had to be confirmed first.
    fn confirmed(&mut self, step: &mut Step<'_, W, L>, id: LeaseId) {
        let Some(lease) = self.leases.iter().find(|lease| lease.id == id) else { return };
        for offer in self.queue.offers.iter_mut().filter(|offer| offer.guard.lease == id && offer.until.is_none()) {
            let Some(entry) = lease.guards.iter().find(|entry| entry.id == offer.guard.guard) else {
                continue;
            };
            offer.begin(lease, step.now, self.queue.vain);
            let granted = lease.granted(self.id, entry);
            step.out.push(Action::Wake(offer.waiter.handle.clone(), Outcome::Granted(granted)));
        }
    }
}

impl<W, L: LeaseCell> Step<'_, W, L> {
    /// Adds a lease to the batch of its engine. The batch is sent when it is full, or at the end of the tick.
    fn renew(&mut self, key: KeyId, lease: &mut Lease<L>) {
        let most = self.traits(lease.terms.member).batch;
        let id = self.batch();
        let batch = self.batches.entry(lease.terms.member).or_insert_with(|| Batch::new(id, self.now));
        batch.push(key, lease);
        if batch.leases.len() >= most
            && let Some(full) = self.batches.remove(&lease.terms.member)
        {
            self.send(lease.terms.member, Request::Renew(full));
        }
    }
}
