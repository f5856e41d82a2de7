//! When a released lease passes to the next waiter of this process, and which readers share one.

use super::backoff::SHORTEST_POLL;
use super::event::{Action, GuardId, LeaseCell, LeaseId};
use super::key::Key;
use super::lease::GuardEntry;
use super::pending::PendingClaim;
use super::step::Step;
use super::waiter::Waiter;
use crate::{LocalHandoff, Mode};

impl<W: Clone, L: LeaseCell> Key<W, L> {
    /// Passes the lease of a guard to the next waiter here, if that wants the same and the limits allow it.
    pub(super) fn pass_on(&mut self, step: &mut Step<'_, W, L>, index: usize, entry: usize) -> bool {
        if !self.may_pass_on(step, index, entry) {
            return false;
        }
        let (id, next) = (self.leases[index].id, GuardId(step.id()));
        let before = self.leases[index].guards.remove(entry);
        let number = before.number + 1;
        let waiter = self.remove(step, 0);
        self.offer(step, waiter, id, GuardEntry { id: next, number, ..before });
        step.out.push(Action::HandedOff);
        true
    }

    fn may_pass_on(&mut self, step: &mut Step<'_, W, L>, index: usize, entry: usize) -> bool {
        let lease = &self.leases[index];
        let traits = step.traits(lease.terms.member);
        // While a reader held the key, others may have been granted it: a successor could return with a smaller token than
        // theirs. The guards of a session are not handed off at all.
        let passes = traits.handoffs > 0 && lease.is_exclusive() && !traits.reentrant && lease.is_settled(step.now);
        if !passes {
            return false;
        }
        let used_up = lease.guards[entry].number >= traits.handoffs;
        let too_old = step.now.since(lease.since) >= traits.handoff_age.min(lease.terms.ttl / 8);
        if used_up || too_old {
            if !traits.queues && !self.queue.waiters.is_empty() {
                // Other processes poll for the key: the waiters here must not send a claim before them every time.
                self.store.yield_until = step.now.plus(step.random.jittered(SHORTEST_POLL));
            }
            return false;
        }
        let wanted = |next: &Waiter<W>| next.mode == Mode::Exclusive && lease.suits(next.member, &next.options);
        self.queue.waiters.front().is_some_and(wanted)
    }

    /// Makes co-readers of the readers that queued behind this one before its claim was sent. The token of one that came
    /// later could be smaller than that of a holder elsewhere who released before it came.
    pub(super) fn share(&mut self, step: &mut Step<'_, W, L>, id: LeaseId, claim: &PendingClaim<W>) {
        let mut number = 1;
        let mut index = 0;
        while let Some(waiter) = self.queue.waiters.get(index) {
            let Some(lease) = self.leases.iter().find(|lease| lease.id == id) else { return };
            let settled = step.traits(lease.terms.member).handoffs > 0 && lease.is_settled(step.now);
            let behind = waiter.mode == Mode::Shared && waiter.id.0 < claim.join_limit;
            if number > LocalHandoff::HARD_LIMIT || !settled || !behind {
                return;
            }
            if !lease.suits(waiter.member, &waiter.options) {
                index += 1;
                continue;
            }
            let Some(first) = lease.guards.first().cloned() else { return };
            let waiter = self.remove(step, index);
            let guard = GuardId(step.id());
            self.offer(step, waiter, id, GuardEntry { id: guard, number, ..first });
            number += 1;
        }
    }
}
