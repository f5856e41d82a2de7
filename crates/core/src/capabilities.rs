use std::fmt;
use std::time::Duration;

use crate::LockOptions;

/// What a backend promises beyond mutual exclusion, and why it does not promise the rest.
///
/// A claimed capability is checked by the conformance suite; an unclaimed one is reported as ignored, with the
/// reason given here.
///
/// ```
/// use leasehold_core::{Capabilities, Capability};
///
/// let capabilities = Capabilities::new("example")
///     .with(Capability::Lease)
///     .without(Capability::Shared, "exclusive only");
/// assert!(capabilities.has(Capability::Lease));
/// assert_eq!(capabilities.why_not(Capability::Shared), Some("exclusive only"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub struct Capabilities {
    backend: &'static str,
    claims: [Claimed; Capability::ALL.len()],
    shortest_ttl: Duration,
    lease_granularity: Duration,
}

type Claimed = Result<(), &'static str>;

/// One promise that not every store can give.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize, serde::Serialize), serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum Capability {
    /// Shared grants: the locker is also an [`RwLocker`](crate::RwLocker).
    Shared,
    /// A lease: the store frees the key of a holder that is alive but silent.
    Lease,
    /// Every grant carries a fencing token.
    Fencing,
    /// A release wakes a waiter of another locker by a signal, not by polling.
    Wakeup,
    /// Waiters of all lockers are served in the order in which they came, by the store itself.
    Queue,
    /// Holders in several processes of one machine exclude each other.
    CrossProcess,
    /// Holders on several machines exclude each other.
    CrossHost,
    /// A waiting writer holds back later readers of other processes.
    WriterIntent,
    /// `force_release` tells the holder that it was by force, in whichever process it is.
    ForceNotice,
    /// A grant can be carried to another process and attached there, once: the store has
    /// [`take_over`](crate::Backend::take_over).
    Detach,
    /// A grant passes from guard to guard inside a process without a round trip; see [`LocalHandoff`](crate::LocalHandoff).
    LocalHandoff,
    /// The locker is a session, which may acquire a key again while it holds the key.
    Reentrancy,
}

impl Capability {
    /// All capabilities, in the order of the tables.
    pub const ALL: &'static [Self] = &[
        Self::Shared,
        Self::Lease,
        Self::Fencing,
        Self::Wakeup,
        Self::Queue,
        Self::CrossProcess,
        Self::CrossHost,
        Self::WriterIntent,
        Self::ForceNotice,
        Self::Detach,
        Self::LocalHandoff,
        Self::Reentrancy,
    ];

    /// A short name for tables and reports.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Shared => "shared",
            Self::Lease => "lease",
            Self::Fencing => "fencing",
            Self::Wakeup => "wake-up",
            Self::Queue => "queue",
            Self::CrossProcess => "cross-process",
            Self::CrossHost => "cross-host",
            Self::WriterIntent => "writer-intent",
            Self::ForceNotice => "force-notice",
            Self::Detach => "detach",
            Self::LocalHandoff => "local-handoff",
            Self::Reentrancy => "reentrancy",
        }
    }
}

impl fmt::Display for Capability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Capabilities {
    /// A backend that claims nothing yet. `backend` is the name in errors, metrics and reports.
    pub fn new(backend: &'static str) -> Self {
        Self {
            backend,
            claims: [Err("not claimed"); Capability::ALL.len()],
            shortest_ttl: LockOptions::MIN_TTL,
            lease_granularity: Duration::ZERO,
        }
    }

    /// These capabilities with `capability` claimed.
    pub fn with(mut self, capability: Capability) -> Self {
        self.claims[capability as usize] = Ok(());
        self
    }

    /// These capabilities with `capability` declined, and why.
    pub fn without(mut self, capability: Capability, why: &'static str) -> Self {
        self.claims[capability as usize] = Err(why);
        self
    }

    /// These capabilities of a store that cannot time a shorter lease than this. By default that is
    /// [`LockOptions::MIN_TTL`](crate::LockOptions::MIN_TTL).
    pub fn with_shortest_ttl(mut self, shortest: Duration) -> Self {
        self.shortest_ttl = shortest;
        self
    }

    /// The shortest lease that can be asked for; the engine refuses a shorter one before anything is sent.
    #[must_use]
    pub fn shortest_ttl(&self) -> Duration {
        self.shortest_ttl
    }

    /// These capabilities of a store that times leases in steps of this length: it ends a lease later than was asked for, by this
    /// much at most, and never earlier. By default it is exact, to a millisecond.
    pub fn with_lease_granularity(mut self, granularity: Duration) -> Self {
        self.lease_granularity = granularity;
        self
    }

    /// How much later than was asked for a lease may end in the store. A lease is never over earlier.
    #[must_use]
    pub fn lease_granularity(&self) -> Duration {
        self.lease_granularity
    }

    /// The name of the backend.
    pub fn backend(&self) -> &'static str {
        self.backend
    }

    /// Whether `capability` is claimed.
    #[must_use]
    pub fn has(&self, capability: Capability) -> bool {
        self.claims[capability as usize].is_ok()
    }

    /// Why `capability` is declined; `None` if it is claimed.
    #[must_use]
    pub fn why_not(&self, capability: Capability) -> Option<&'static str> {
        self.claims[capability as usize].err()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_lists_each_capability_at_its_own_index() {
        for (index, capability) in Capability::ALL.iter().enumerate() {
            assert_eq!(*capability as usize, index, "{capability}");
        }
    }
}
