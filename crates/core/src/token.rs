use std::fmt;

use crate::LocalHandoff;

/// A number that grows with every grant of a key: hand it to the resource, and let the resource refuse anything
/// that comes with a smaller one than it has seen.
///
/// The promise, word for word: *tokens are unique; if one acquire returned before another was called, its token is
/// the smaller.* A lease alone cannot stop a holder that was paused past its lease from writing; the token can
/// (Kleppmann, "How to do distributed locking", 2016).
///
/// A token is `epoch << 10 | n`: the epoch comes from the store in the same atomic step as the grant and is
/// seeded with the store's clock in milliseconds; `n` counts the hand-offs inside one process. It stays below 2^53
/// until the year 2248, so it survives JSON, Lua and SQL `BIGINT`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FencingToken(u64);

impl FencingToken {
    /// How many low bits count hand-offs.
    pub(crate) const HANDOFF_BITS: u32 = 10;

    /// The largest epoch that a store may give: all tokens made of it stay below 2^53.
    pub const MAX_EPOCH: u64 = (1 << (53 - Self::HANDOFF_BITS)) - 1;

    /// The first token of an epoch.
    pub fn of_epoch(epoch: u64) -> Self {
        Self::new(epoch, 0)
    }

    /// The token after `handoffs` hand-offs of an epoch.
    pub(crate) fn new(epoch: u64, handoffs: u16) -> Self {
        debug_assert!(handoffs <= LocalHandoff::HARD_LIMIT, "the count would run into the epoch");
        Self(epoch << Self::HANDOFF_BITS | u64::from(handoffs))
    }

    /// The number that the store gave with the grant: the same for all tokens of one lease.
    #[must_use]
    pub const fn epoch(self) -> u64 {
        self.0 >> Self::HANDOFF_BITS
    }

    /// The number to send along with every write.
    pub const fn get(self) -> u64 {
        self.0
    }
}

impl From<u64> for FencingToken {
    fn from(token: u64) -> Self {
        Self(token)
    }
}

impl From<FencingToken> for u64 {
    fn from(token: FencingToken) -> Self {
        token.0
    }
}

impl fmt::Display for FencingToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_token_of_a_lease_has_its_epoch() {
        for epoch in [0, 1, 1_700_000_000_000, FencingToken::MAX_EPOCH] {
            for handoffs in [0, 1, LocalHandoff::HARD_LIMIT] {
                assert_eq!(FencingToken::new(epoch, handoffs).epoch(), epoch);
            }
            assert_eq!(FencingToken::from(FencingToken::of_epoch(epoch).get()).epoch(), epoch);
        }
    }

    #[test]
    fn the_last_token_of_the_largest_epoch_is_the_last_below_two_to_the_53rd() {
        assert_eq!(FencingToken::new(FencingToken::MAX_EPOCH, LocalHandoff::HARD_LIMIT).get(), (1 << 53) - 1);
    }
}
