//! Waiters that are not polled: they keep the key from nobody, and their places in the queue.
//!
//! When nobody comes for an offer, those in the queue are called, more of them each time. The first of them that is polled shows that the
//! others are not: it passes them. Whoever was passed is back in its place as soon as it is polled.

use std::time::Duration;

use super::event::{Action, LeaseCell, Outcome, WaiterId};
use super::key::Key;
use super::step::Step;
use super::waiter::{Offer, Waiter};
use crate::Mode;
use crate::clock::Moment;

/// How many times as many waiters are called after each pause in which none of those that were called is polled.
const MORE: usize = 4;

/// That pause.
const PAUSE: Duration = Duration::from_millis(5);

impl<W: Clone, L: LeaseCell> Key<W, L> {
    /// Calls the next waiters for offers for which nobody came.
    pub(super) fn call_others(&mut self, step: &mut Step<'_, W, L>) {
        for index in 0..self.queue.offers.len() {
            if self.calls_at(&self.queue.offers[index]).is_none_or(|at| step.now < at) {
                continue;
            }
            let offer = &self.queue.offers[index];
            let (mut called, calls) = (offer.called, offer.calls);
            for waiter in self.queue.waiters.iter().filter(|waiter| waiter.id > offer.called).take(calls) {
                called = waiter.id;
                step.out.push(Action::Wake(waiter.handle.clone(), Outcome::Called));
            }
            let offer = &mut self.queue.offers[index];
            (offer.called, offer.calls) = (called, calls.saturating_mul(MORE));
            offer.calls_at = step.now.plus(PAUSE);
        }
    }

    /// When the next waiters are called for an offer, if there are any that it is in the way of.
    pub(super) fn calls_at(&self, offer: &Offer<W>) -> Option<Moment> {
        let waits = offer.until.is_some() && !offer.taken_over;
        let shared = offer.waiter.mode == Mode::Shared;
        let mut behind = self.queue.waiters.iter().rev().take_while(|waiter| waiter.id > offer.called);
        let in_the_way = waits && behind.any(|waiter| !shared || waiter.mode == Mode::Exclusive);
        in_the_way.then_some(offer.calls_at)
    }

    /// The task of a waiter is polled: it is back in its place if it was passed, and else passes those before it that were offered
    /// a guard, or called, and are not polled.
    pub(super) fn polled(&mut self, step: &mut Step<'_, W, L>, id: WaiterId) {
        if let Some(asleep) = self.queue.asleep.iter().position(|waiter| waiter.id == id) {
            let waiter = self.queue.asleep.swap_remove(asleep);
            self.detach_requests(step);
            self.back_in_line(waiter);
        }
        if let Some(index) = self.queue.index(id) {
            let mode = self.queue.waiters[index].mode;
            let passed = |offer: &Offer<W>| {
                let excludes = mode == Mode::Exclusive || offer.waiter.mode == Mode::Exclusive;
                offer.called > WaiterId::default() && offer.until.is_some() && !offer.taken_over && excludes
            };
            if self.queue.offers.iter().any(passed) {
                for _ in 0..index {
                    let passed = self.remove(step, 0);
                    self.sleeps(step, passed);
                }
                self.queue.vain += 1;
            }
            while let Some(offer) = self.queue.offers.iter().position(passed) {
                self.take_back(step, offer);
            }
        }
        self.advance(step);
    }

    /// Takes back an offer that nobody came for.
    pub(super) fn take_back(&mut self, step: &mut Step<'_, W, L>, offer: usize) {
        let Offer { waiter, guard, taken_over, .. } = self.queue.offers.remove(offer);
        if !taken_over {
            self.sleeps(step, waiter);
        }
        self.release_guard(step, &guard, None);
    }

    /// The runtime of this waiter does not carry its claims. Those behind do not wait for it.
    pub(super) fn is_not_driven(&mut self, step: &mut Step<'_, W, L>, waiter: Option<WaiterId>) {
        let index = waiter.and_then(|waiter| self.queue.index(waiter));
        if let Some(index) = index.filter(|index| index + 1 < self.queue.waiters.len()) {
            let passed = self.remove(step, index);
            self.sleeps(step, passed);
        }
    }

    /// Keeps a waiter out of the queue until it is polled. It is called for that, also if it was told of a guard: an older word may
    /// have come later.
    pub(super) fn sleeps(&mut self, step: &mut Step<'_, W, L>, waiter: Waiter<W>) {
        step.out.push(Action::Wake(waiter.handle.clone(), Outcome::Called));
        self.queue.asleep.push(waiter);
    }
}
