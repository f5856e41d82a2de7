//! Offers that nobody came for: a waiter whose task is not polled keeps the key from nobody.

use std::mem;
use std::time::Duration;

use super::event::{Action, GuardRef, LeaseCell, Outcome, WaiterId};
use super::key::Key;
use super::lease::Lease;
use super::step::Step;
use super::waiter::{Offer, Told, Waiter};
use crate::Mode;
use crate::clock::Moment;

/// How many times as many waiters are told of an offer after each pause in which none of those that know came for it.
const MORE: usize = 4;

/// That pause.
const PAUSE: Duration = Duration::from_millis(5);

/// So many at the front of the queue are looked at.
const FRONT: usize = 256;

impl<W: Clone, L: LeaseCell> Key<W, L> {
    /// Tells the next waiters of offers for which nobody came. Whoever comes first has the guard.
    pub(super) fn open_offers(&mut self, step: &mut Step<'_, W, L>) {
        let Self { offers, leases, waiters, .. } = self;
        for offer in offers.iter_mut().filter(|offer| step.now >= offer.opens_at) {
            let Some(lease) = leases.iter().find(|lease| lease.id == offer.guard.lease) else { continue };
            let Some(entry) = lease.guards.iter().find(|entry| entry.id == offer.guard.guard) else { continue };
            let untold = waiters.iter_mut().take(FRONT).filter(|waiter| may_have(waiter, offer, lease, step.now));
            for waiter in untold.take(offer.tells) {
                waiter.told = Told::Of(offer.guard.guard);
                let granted = Outcome::Granted(lease.granted(self.id, entry));
                step.out.push(Action::Wake(waiter.handle.clone(), granted));
            }
            (offer.opens_at, offer.tells) = (step.now.plus(PAUSE), offer.tells.saturating_mul(MORE));
        }
    }

    /// When the next waiters are told of an offer, if there are any.
    pub(super) fn opens_at(&self, offer: &Offer<W>, now: Moment) -> Option<Moment> {
        let lease = self.leases.iter().find(|lease| lease.id == offer.guard.lease)?;
        let mut front = self.waiters.iter().take(FRONT);
        front.any(|waiter| may_have(waiter, offer, lease, now)).then_some(offer.opens_at)
    }

    /// A waiter that was told of another's offer comes for it. The other goes back to its place in the queue. False: the guard
    /// is somebody else's by now, and the waiter waits on.
    pub(super) fn take_up(&mut self, step: &mut Step<'_, W, L>, id: WaiterId, guard: &GuardRef) -> bool {
        let Some(index) = self.index(id) else { return false };
        let told = mem::replace(&mut self.waiters[index].told, Told::Nothing);
        let offer = self.offers.iter().position(|offer| offer.guard == *guard && offer.until.is_some());
        let Some(offer) = offer.filter(|_| told == Told::Of(guard.guard)) else { return false };
        for passed in self.waiters.iter_mut().take(index).filter(|waiter| waiter.told == told) {
            passed.told = Told::InVain;
        }
        let passed = self.offers.swap_remove(offer).waiter;
        self.remove(step, index);
        self.back_in_line(Waiter { told: Told::InVain, ..passed });
        self.advance(step);
        true
    }
}

/// Whether this offer may go to the waiter, which does not know of it.
fn may_have<W, L: LeaseCell>(waiter: &Waiter<W>, offer: &Offer<W>, lease: &Lease<L>, now: Moment) -> bool {
    let passes = offer.until.is_some() && !offer.taken_over && lease.is_exclusive() && !lease.is_reentrant();
    let passes = passes && lease.is_settled(now);
    let is_new = waiter.is_awake() && waiter.told != Told::Of(offer.guard.guard);
    passes && is_new && waiter.mode == Mode::Exclusive && lease.suits(waiter.member, &waiter.options)
}
