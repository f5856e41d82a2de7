//! The option that limits local hand-offs.

use std::time::Duration;

/// How often and how long a lease may pass from guard to guard inside a process, without a request to the store.
///
/// When a guard is released and the next waiter of the process wants the same (mode, ttl, label, reason), that waiter gets
/// the same lease with the rest of its time, and the next token. A count and an age limit this, so that other processes get
/// their turn; the rest of the lease limits it, too, so that no waiter gets a lease that is almost over. The
/// store is not asked whether it still has the lease: where it was ended by force meanwhile, the waiter learns that at its next
/// renewal, and who was granted the key in between has a larger token.
///
/// Readers share a lease instead: readers who queued behind another before its claim was sent become co-readers of its
/// grant, each with a token of its own. The grant in the store ends with the last of them.
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
    /// The largest possible count: a larger one would not fit into the low bits of the token.
    pub const HARD_LIMIT: u16 = 63;

    /// At most 63 hand-offs of one lease, within 10 ms or an eighth of its ttl, whichever is less.
    pub fn new() -> Self {
        Self { most: Self::HARD_LIMIT, age: Duration::from_millis(10) }
    }

    /// No local hand-off: every release goes to the store, and every reader sends its own claim.
    pub fn off() -> Self {
        Self { most: 0, age: Duration::ZERO }
    }

    /// At most `most` hand-offs of one lease. A number above [`HARD_LIMIT`](Self::HARD_LIMIT) counts as that limit.
    pub fn most(self, most: u16) -> Self {
        Self { most: most.min(Self::HARD_LIMIT), ..self }
    }

    /// No hand-off once the lease has this age, or an eighth of its ttl.
    pub fn age(self, age: Duration) -> Self {
        Self { age, ..self }
    }
}

impl Default for LocalHandoff {
    fn default() -> Self {
        Self::new()
    }
}
