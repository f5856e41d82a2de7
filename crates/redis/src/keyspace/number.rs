use std::time::Duration;

/// A number that tokens are made of: below 2^53, from where on scripts cannot count. `None`: it is none of ours.
pub fn number(text: &str) -> Option<u64> {
    text.parse().ok().filter(|number| *number < 1 << 53)
}

/// What is left of a lease, as `PTTL` tells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lease {
    /// So much.
    Ends(Duration),
    /// The entry has no lease.
    Endless,
}

impl Lease {
    /// How long it lasts, if it ends.
    pub fn remaining(self) -> Option<Duration> {
        if let Self::Ends(left) = self { Some(left) } else { None }
    }
}

/// What a script says is left of a lease, in ms. `None`: nothing that Redis says of an entry that is there.
pub fn lease(text: &str) -> Option<Lease> {
    match text.parse::<i64>().ok()? {
        -1 => Some(Lease::Endless),
        left => u64::try_from(left).ok().map(|left| Lease::Ends(Duration::from_millis(left))),
    }
}
