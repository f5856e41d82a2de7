use std::time::Duration;

/// Another held the key for the whole wait.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Busy {
    /// What is left of the lease that is in the way; its holder may prolong it, or release earlier. `None` where that is not
    /// known, as on a backend without leases, or where the caller waited in a queue of the store's.
    pub remaining: Option<Duration>,
}

/// A guard, or why there is none.
pub type OrBusy<G> = Result<G, Busy>;
