use std::time::Duration;

/// Reads an epoch, the number that tokens are made of: below 2^53, from where on Lua cannot count. `None`: the text is no
/// epoch that Leasehold wrote.
pub fn read_epoch(text: &str) -> Option<u64> {
    text.parse().ok().filter(|number| *number < 1 << 53)
}

/// What is left of a lease, as `PTTL` answers it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lease {
    /// The lease ends after this time.
    Ends(Duration),
    /// The entry has no lease.
    Endless,
}

impl Lease {
    /// Reads what a script says is left of a lease, in ms. `None`: Redis says no such thing of an entry that is there.
    pub fn read(text: &str) -> Option<Self> {
        match text.parse::<i64>().ok()? {
            -1 => Some(Self::Endless),
            left => u64::try_from(left).ok().map(|left| Self::Ends(Duration::from_millis(left))),
        }
    }

    /// How long the lease lasts; `None` for an entry that has none.
    pub fn remaining(self) -> Option<Duration> {
        if let Self::Ends(left) = self { Some(left) } else { None }
    }
}
