use std::fmt;

use crate::HandOver;

/// A number that grows with every grant of a key: hand it to the resource, and let the resource refuse anything
/// that comes with a smaller one than it has seen.
///
/// The promise, word for word: *tokens are unique; if one acquire returned before another was called, its token is
/// the smaller.* A lease alone cannot stop a holder that was paused past its lease from writing; the token can
/// (Kleppmann, "How to do distributed locking", 2016).
///
/// A token is `tenure << 10 | n`: the tenure comes from the store in the same atomic step as the grant and is
/// seeded with the store's clock in milliseconds; `n` counts the hand-overs inside one process. It stays below 2^53
/// until the year 2248, so it survives JSON, Lua and SQL `BIGINT`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FencingToken(u64);

impl FencingToken {
    /// How many low bits count hand-overs.
    pub(crate) const HAND_OVER_BITS: u32 = 10;

    /// The first token of a tenure.
    pub fn of_tenure(tenure: u64) -> Self {
        Self::new(tenure, 0)
    }

    /// The token after `hand_overs` hand-overs of a tenure.
    pub(crate) fn new(tenure: u64, hand_overs: u16) -> Self {
        debug_assert!(hand_overs <= HandOver::HARD_LIMIT, "the count would run into the tenure");
        Self(tenure << Self::HAND_OVER_BITS | u64::from(hand_overs))
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
