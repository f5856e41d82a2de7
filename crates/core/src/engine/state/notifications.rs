//! When the state machine subscribes to a key, and what a notification changes.

use super::backoff::BackOff;
use super::event::{Action, LeaseCell, Member, Request, RequestId};
use super::key::Key;
use super::lease::Lease;
use super::pending::{PendingClaim, Phase};
use super::step::Step;
use super::subscription::Subscribed;
use crate::Notification;
use crate::clock::Moment;

impl<W: Clone, L: LeaseCell> Key<W, L> {
    pub(super) fn notified(&mut self, step: &mut Step<'_, W, L>, request: RequestId, notification: Notification) {
        let Subscribed::Yes(subscribed, _) = self.store.subscription.state else { return };
        if subscribed != request {
            return;
        }
        match notification {
            Notification::Granted { owner, epoch } => {
                let is_told =
                    |claim: &PendingClaim<W>| claim.owner == owner && !matches!(claim.phase, Phase::Abandoned(_));
                let Some(index) = self.store.claims.iter().position(is_told) else { return };
                let claim = &mut self.store.claims[index];
                if let Phase::Sent { message, .. } = &mut claim.phase {
                    *message = epoch;
                    return;
                }
                if let Some(first) = claim.notified_lease(epoch, step.now) {
                    let claim = self.store.claims.remove(index);
                    self.grant(step, claim, epoch, Some(first));
                    return self.advance(step);
                }
            }
            Notification::Freed => {}
            Notification::Ended => self.store.subscription.state = Subscribed::No,
        }
        if notification != Notification::Ended {
            self.store.subscription.pauses = BackOff::between_subscriptions();
        }
        self.store.changes.notified += 1;
        let heeded = self.store.subscription.heard(step.now);
        if heeded > step.now {
            let asked = self.queue.waiters.iter_mut().take_while(|waiter| waiter.has_claimed());
            asked.for_each(|waiter| waiter.next_claim_at = waiter.next_claim_at.min(heeded));
        } else {
            self.claim_anew(|_| true);
            self.confirm_own(step);
        }
        self.advance(step);
    }

    /// Asks whether the lease in whose way waiters here stand is still there: it may have been taken by force.
    fn confirm_own(&mut self, step: &mut Step<'_, W, L>) {
        let in_doubt = |lease: &&Lease<L>| {
            let renews = lease.guards.iter().any(|guard| guard.renew) && lease.renewal.is_none();
            lease.is_exclusive() && lease.is_held(step.now) && renews && step.now >= lease.stands_at()
        };
        if let Some(lease) = self.leases.iter().find(in_doubt).filter(|_| !self.queue.waiters.is_empty()) {
            let lease = lease.id;
            self.renew_now(step, lease, None);
        }
    }

    pub(super) fn subscription_began(&mut self, step: &mut Step<'_, W, L>, request: RequestId, begun: bool) {
        let Subscribed::Asked(asked, member) = self.store.subscription.state else { return };
        if asked != request {
            return;
        }
        self.store.subscription.state = if begun { Subscribed::Yes(request, member) } else { Subscribed::No };
        if begun {
            // The key may have been freed before the subscription began.
            self.store.changes.freed += 1;
            self.claim_anew(|claim| !claim.is_notified());
            self.confirm_own(step);
        } else {
            self.queue
                .waiters
                .iter_mut()
                .take_while(|waiter| waiter.has_claimed())
                .for_each(|waiter| waiter.polling = BackOff::polling());
        }
        self.advance(step);
    }

    /// Subscribes to the key while a waiter waits for other processes, and unsubscribes afterwards.
    pub(super) fn subscribe(&mut self, step: &mut Step<'_, W, L>) {
        if self.queue.waiters.is_empty() {
            self.store.wants_notifications = false;
            return self.unsubscribe(step);
        }
        let due = self.subscribes(step).filter(|(_, at)| step.now >= *at);
        if let Some((member, _)) = due {
            let request = step.request(self.id);
            self.store.subscription.not_before = step.now.plus(self.store.subscription.pauses.next(step.random, None));
            self.store.subscription.state = Subscribed::Asked(request, member);
            step.send(member, Request::Subscribe(request, self.name.clone()));
        }
    }

    /// Which engine has to subscribe, and when: at once for a holder of another process, later for one of this process, which
    /// may lose the key by force.
    pub(super) fn subscribes(&self, step: &Step<'_, W, L>) -> Option<(Member, Moment)> {
        let first = self.queue.waiters.front().filter(|_| self.store.subscription.state == Subscribed::No)?;
        let behind = || self.leases.iter().find(|lease| lease.is_exclusive() && lease.end.is_none());
        let from = if self.store.wants_notifications { Moment::default() } else { behind()?.stands_at() };
        let at = from.max(self.store.subscription.not_before);
        step.traits(first.member).notifies.then_some((first.member, at))
    }

    pub(super) fn unsubscribe(&mut self, step: &mut Step<'_, W, L>) {
        if let Subscribed::Asked(request, _) | Subscribed::Yes(request, _) = self.store.subscription.state {
            self.store.subscription.state = Subscribed::No;
            step.out.push(Action::Unsubscribe(request));
        }
    }

    /// The pauses between polls: longer while the key is subscribed to.
    pub(super) fn polling(&self) -> BackOff {
        if self.store.subscription.state == Subscribed::No { BackOff::polling() } else { BackOff::beside_signals() }
    }
}
