use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Handle;

use super::release::Hold;
use super::tenure::Grip;
use super::{Core, observe, waiting};
use crate::Backend;

/// How far a grant may pass from guard to guard inside a process without a round trip to the store.
///
/// When a guard ends and the next in line here wants just the same (mode, lease, label, reason), it gets the same
/// tenure, what is left of its lease, and the next token. Bounded by count and by age, so that other processes get
/// their turn, and by the lease, so that nobody gets what may not last.
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

    /// Every release goes to the store.
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

    fn is_off(self) -> bool {
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
    pub(super) fn pass_on(self: &Arc<Self>, grip: &Grip, runtime: &Handle) -> bool {
        let (tenure, bounds) = (&grip.tenure, self.hand_over);
        if bounds.is_off() || self.sessions.are_reentrant() || !tenure.is_settled() {
            return false;
        }
        let now = self.clock.now();
        let age = now.since(tenure.since);
        if grip.hand_overs >= bounds.most || age >= bounds.age.min(tenure.ttl / 8) {
            // Other processes poll for it: whoever waits here must not be back before them every time.
            self.queue.rest(&grip.grant.key, now.plus(waiting::jittered(waiting::SHORTEST_POLL)));
            return false;
        }
        while let Some(next_in_line) = self.queue.successor(tenure) {
            // Whoever left meanwhile sends it back, and no number is used up.
            let next = Hold::new(grip.next(), Arc::clone(self) as _, runtime.clone());
            match next_in_line.send(next) {
                Ok(()) => {
                    self.leave(grip);
                    // The successor may have ended before this guard was off: then this one was the last.
                    if !tenure.is_held() {
                        self.queue.freed(&grip.grant.key);
                    }
                    observe::handed_over(self.name());
                    return true;
                }
                Err(unwanted) => unwanted.forget(),
            }
        }
        false
    }
}
