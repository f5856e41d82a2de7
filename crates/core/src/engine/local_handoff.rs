//! The option that limits local hand-offs.

use std::time::Duration;

/// How far a grant may pass from guard to guard inside a process without a round trip to the store.
///
/// When a guard ends and the next in line here wants just the same (mode, lease, label, reason), it gets the same
/// epoch, what is left of its lease, and the next token. Bounded by count and by age, so that other processes get
/// their turn, and by the lease, so that nobody gets what may not last.
///
/// Readers share instead: those who queued behind a reader before it asked the store ride on its grant, each with a
/// token of its own, and the store's grant ends with the last of them.
///
/// ```
/// use std::time::Duration;
/// use leasehold_core::LocalHandoff;
///
/// let rarely = LocalHandoff::new().most(8).age(Duration::from_millis(2));
/// let never = LocalHandoff::off();
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct LocalHandoff {
    pub(super) most: u16,
    pub(super) age: Duration,
}

impl LocalHandoff {
    /// No count may go beyond this: it would run into the epoch's part of the token.
    pub const HARD_LIMIT: u16 = 1023;

    /// At most 64 hand-offs of one epoch, within 10 ms or an eighth of the lease, whichever is less.
    pub fn new() -> Self {
        Self { most: 64, age: Duration::from_millis(10) }
    }

    /// Every release goes to the store, and every reader asks for itself.
    pub fn off() -> Self {
        Self { most: 0, age: Duration::ZERO }
    }

    /// At most so many hand-offs of one epoch; more than [`HARD_LIMIT`](Self::HARD_LIMIT) counts as that.
    pub fn most(self, most: u16) -> Self {
        Self { most: most.min(Self::HARD_LIMIT), ..self }
    }

    /// None any more at this age of the epoch, or at an eighth of its lease.
    pub fn age(self, age: Duration) -> Self {
        Self { age, ..self }
    }
}

impl Default for LocalHandoff {
    fn default() -> Self {
        Self::new()
    }
}
