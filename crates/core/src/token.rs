use std::fmt;
use std::time::{Duration, SystemTime};

use crate::LocalHandoff;

/// A number that grows with every grant of a key: hand it to the resource, and let the resource refuse anything
/// that comes with a smaller one than it has seen.
///
/// The promise, word for word: *tokens are unique; if one acquire returned before another was called, its token is
/// the smaller.* A lease alone cannot stop a holder that was paused past its lease from writing; the token can
/// (Kleppmann, "How to do distributed locking", 2016).
///
/// A token is `epoch << 6 | n`: the epoch comes from the store in the same atomic step as the grant, and
/// [`next_epoch`](Self::next_epoch) says which one; `n` counts the hand-offs inside one process. A token stays below 2^53
/// until the year 2248, so it survives JSON, Lua and SQL `BIGINT`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize, serde::Serialize))]
pub struct FencingToken(u64);

impl FencingToken {
    /// How many low bits count hand-offs.
    pub(crate) const HANDOFF_BITS: u32 = 6;

    /// The largest epoch that a store may give: all tokens made of it stay below 2^53.
    pub const MAX_EPOCH: u64 = (1 << (53 - Self::HANDOFF_BITS)) - 1;

    /// The epoch that belongs to a clock reading, given as the time since 1970: it counts in sixteenths of a millisecond.
    ///
    /// Saturates at [`MAX_EPOCH`](Self::MAX_EPOCH), which comes in the year 2248.
    #[must_use]
    pub fn epoch_at(since_1970: Duration) -> u64 {
        u64::try_from(since_1970.as_nanos() / 62_500).unwrap_or(u64::MAX).min(Self::MAX_EPOCH)
    }

    /// The moment at which a clock reads this epoch, the opposite of [`epoch_at`](Self::epoch_at). Saturates as that does.
    pub(crate) fn time_of(epoch: u64) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_nanos(epoch.min(Self::MAX_EPOCH) * 62_500)
    }

    /// How far an epoch may be ahead of the store's clock: a millisecond.
    pub const MOST_AHEAD: u64 = 16;

    /// The epoch of the next grant of a key: the rule of every store, for those whose steps are written in Rust.
    ///
    /// `stored` is the epoch of the last grant, and `clock` is [`epoch_at`](Self::epoch_at) the store's clock. The next epoch
    /// is the stored one plus one, or the clock if that is larger: a counter that was set back, as on a replica that lags, is
    /// overtaken by the clock. A store without a counter begins a millisecond ahead of its clock, above all that it gave.
    ///
    /// `None`: the epoch would be ahead by more than a millisecond. The step then changes nothing and answers
    /// [`Attempt::AHEAD_OF_THE_CLOCK`](crate::Attempt::AHEAD_OF_THE_CLOCK). A counter that is ahead by more than a second
    /// shows that the clock was set back, because this rule never gets there; it counts on, so that the key is not shut
    /// until the clock is there.
    #[must_use]
    pub fn next_epoch(stored: Option<u64>, clock: u64) -> Option<u64> {
        const A_SECOND: u64 = 16_000;
        let most = clock.saturating_add(Self::MOST_AHEAD);
        let next = stored.map_or(most, |stored| stored.saturating_add(1).max(clock));
        (next <= most || next > most.saturating_add(A_SECOND)).then_some(next)
    }

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
    fn an_epoch_is_a_sixteenth_of_a_millisecond() {
        assert_eq!(FencingToken::epoch_at(Duration::from_secs(1)), 16_000);
        assert_eq!(FencingToken::epoch_at(Duration::from_nanos(62_499)), 0);
        assert_eq!(FencingToken::epoch_at(Duration::from_nanos(62_500)), 1);
        assert_eq!(FencingToken::epoch_at(Duration::MAX), FencingToken::MAX_EPOCH);
        let in_2247 = Duration::from_secs(8_741_000_000);
        assert!(FencingToken::epoch_at(in_2247) < FencingToken::MAX_EPOCH);
    }

    #[test]
    fn an_epoch_is_read_as_the_time_at_which_the_clock_was_there() {
        for epoch in [0, 1, 16_000, 28_000_000_000_001, FencingToken::MAX_EPOCH] {
            let since_1970 = FencingToken::time_of(epoch).duration_since(SystemTime::UNIX_EPOCH).unwrap();
            assert_eq!(FencingToken::epoch_at(since_1970), epoch);
        }
        // Nothing that stands in a store makes it panic.
        assert_eq!(FencingToken::time_of(u64::MAX), FencingToken::time_of(FencingToken::MAX_EPOCH));
    }

    #[test]
    fn a_counter_is_at_the_clock_and_ahead_of_it_by_a_millisecond_at_most() {
        assert_eq!(FencingToken::next_epoch(Some(5), 70_000), Some(70_000));
        assert_eq!(FencingToken::next_epoch(Some(70_000), 70_000), Some(70_001));
        assert_eq!(FencingToken::next_epoch(Some(70_015), 70_000), Some(70_016));
        assert_eq!(FencingToken::next_epoch(Some(70_016), 70_000), None);
        assert_eq!(FencingToken::next_epoch(Some(86_015), 70_000), None);
    }

    #[test]
    fn a_store_that_forgot_its_counter_begins_above_all_that_it_gave() {
        let most = FencingToken::next_epoch(Some(70_015), 70_000);
        assert!(FencingToken::next_epoch(None, 70_001) > most);
        assert!(FencingToken::next_epoch(Some(60_000), 70_017) > most, "a counter that was set back");
    }

    #[test]
    fn where_the_clock_was_set_back_the_counter_goes_on() {
        assert_eq!(FencingToken::next_epoch(Some(86_016), 70_000), Some(86_017));
        assert_eq!(FencingToken::next_epoch(Some(u64::MAX), 70_000), Some(u64::MAX));
    }

    #[test]
    fn the_last_token_of_the_largest_epoch_is_the_last_below_two_to_the_53rd() {
        assert_eq!(FencingToken::new(FencingToken::MAX_EPOCH, LocalHandoff::HARD_LIMIT).get(), (1 << 53) - 1);
    }
}
