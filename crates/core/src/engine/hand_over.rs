use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Handle;

use super::release::Hold;
use super::tenure::Grip;
use super::{Core, waiting};
use crate::{Backend, Capability, Mode};

/// How far a grant may pass from guard to guard inside a process without a round trip to the store.
///
/// When a guard ends and the next in line here wants just the same (mode, lease, label, reason), it gets the same
/// tenure, what is left of its lease, and the next token. Bounded by count and by age, so that other processes get
/// their turn, and by the lease, so that nobody gets what may not last.
///
/// Readers share instead: those who queued behind a reader before it asked the store ride on its grant, each with a
/// token of its own, and the store's grant ends with the last of them.
///
/// ```
/// use std::time::Duration;
/// use leasehold_core::HandOver;
///
/// let rarely = HandOver::new().most(8).age(Duration::from_millis(2));
/// let never = HandOver::off();
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct HandOver {
    most: u16,
    age: Duration,
}

impl HandOver {
    /// No count may go beyond this: it would run into the tenure's part of the token.
    pub const HARD_LIMIT: u16 = 1023;

    /// At most 64 hand-overs of one tenure, within 10 ms or an eighth of the lease, whichever is less.
    pub fn new() -> Self {
        Self { most: 64, age: Duration::from_millis(10) }
    }

    /// Every release goes to the store, and every reader asks for itself.
    pub fn off() -> Self {
        Self { most: 0, age: Duration::ZERO }
    }

    /// At most so many hand-overs of one tenure; more than [`HARD_LIMIT`](Self::HARD_LIMIT) counts as that.
    pub fn most(self, most: u16) -> Self {
        Self { most: most.min(Self::HARD_LIMIT), ..self }
    }

    /// None any more at this age of the tenure, or at an eighth of its lease.
    pub fn age(self, age: Duration) -> Self {
        Self { age, ..self }
    }

    pub(super) fn is_off(self) -> bool {
        self.most == 0
    }
}

impl Default for HandOver {
    fn default() -> Self {
        Self::new()
    }
}

impl<B: Backend> Core<B> {
    /// Gives what this guard holds to the next in line here, if there is one and the bounds allow it. Synchronous,
    /// so that it works in a drop without a runtime. True if the guard has nothing left to release.
    pub(super) fn pass_to_next(self: &Arc<Self>, grip: &Grip, runtime: &Handle) -> bool {
        let (tenure, bounds, now) = (&grip.tenure, self.hand_over, self.clock.now());
        // Beside a reader others may have been granted since: its successor could return with a smaller token than theirs.
        let shared = tenure.grant.mode == Mode::Shared;
        if bounds.is_off() || shared || self.sessions.are_reentrant() || !tenure.is_settled(now) {
            return false;
        }
        let age = now.since(tenure.since);
        if grip.hand_overs >= bounds.most || age >= bounds.age.min(tenure.ttl / 8) {
            if !self.capabilities.has(Capability::Queue) {
                // Other processes poll for it: whoever waits here must not be back before them every time.
                self.queue.rest(&grip.grant.key, now.plus(waiting::jittered(waiting::SHORTEST_POLL)));
            }
            return false;
        }
        while let Some(next_in_line) = self.queue.successor(tenure) {
            // Whoever left meanwhile sends it back, and no number is used up.
            let next = Hold::new(grip.next(), Arc::clone(self) as _, runtime.clone());
            match next_in_line.send(next) {
                Ok(()) => {
                    grip.passed_on();
                    self.observer.handed_over();
                    return true;
                }
                Err(unwanted) => unwanted.grip().passed_on(),
            }
        }
        false
    }

    /// The readers that queued behind this one ride on its grant, if they did before it was asked for: one who came
    /// later could return with a smaller token than somebody elsewhere who returned before it came.
    pub(super) fn take_along(self: &Arc<Self>, hold: &Hold, queued: u64) {
        let grip = hold.grip();
        if self.hand_over.is_off() || !grip.tenure.is_settled(self.clock.now()) {
            return;
        }
        let mut number = 1;
        while number <= HandOver::HARD_LIMIT
            && let Some(rider) = self.queue.rider(&grip.tenure, queued)
        {
            match rider.send(Hold::new(grip.beside(number), Arc::clone(self) as _, Handle::current())) {
                Ok(()) => number += 1,
                Err(unwanted) => unwanted.forget(),
            }
        }
    }
}
