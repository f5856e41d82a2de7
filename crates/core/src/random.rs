//! Randomness: bytes that nobody can guess, and pauses that differ from client to client.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::ops::RangeInclusive;
use std::time::Duration;

/// The pause times a random factor of this range, so that clients that failed in the same moment do not all come back in one.
///
/// A product that is no length of time, because a factor is negative or too large, is replaced by the pause as it was given.
/// Not for secrets.
///
/// ```
/// use std::time::Duration;
///
/// let pause = leasehold_core::jittered(Duration::from_millis(100), 0.5..=1.0);
/// assert!(pause >= Duration::from_millis(50) && pause <= Duration::from_millis(100));
/// ```
pub fn jittered(pause: Duration, factors: RangeInclusive<f64>) -> Duration {
    let (least, most) = factors.into_inner();
    let [a, b, c, d, ..] = any_number().to_ne_bytes();
    let part = f64::from(u32::from_ne_bytes([a, b, c, d])) / f64::from(u32::MAX);
    Duration::try_from_secs_f64(pause.as_secs_f64() * (least + (most - least) * part)).unwrap_or(pause)
}

/// One of the positions of a list of this length, or 0 if it is empty. Not for secrets.
pub(crate) fn position(length: usize) -> usize {
    usize::try_from(any_number() >> 33).unwrap_or_default() % length.max(1)
}

/// Fills the bytes from the randomness of the operating system.
///
/// # Panics
/// If the operating system has none: an owner id that another could guess must not be used.
pub(crate) fn fill(bytes: &mut [u8]) {
    let filled = getrandom::fill(bytes);
    assert!(filled.is_ok(), "the operating system gives no random bytes: {filled:?}");
}

/// The standard library seeds hashers at random and no two alike, and asks the operating system once for a thread.
fn any_number() -> u64 {
    RandomState::new().hash_one(())
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    const PAUSE: Duration = Duration::from_secs(1);

    #[test]
    fn pauses_are_spread_over_the_whole_range() {
        let pauses: Vec<Duration> = (0..1000).map(|_| jittered(PAUSE, 0.5..=1.0)).collect();
        assert!(pauses.iter().all(|pause| (PAUSE / 2..=PAUSE).contains(pause)));
        // Each tenth of the range is missed with a chance of 10^-46.
        let tenths: HashSet<u128> = pauses.iter().map(|pause| (pause.as_millis() - 500).min(499) / 50).collect();
        assert_eq!(tenths.len(), 10);
    }

    #[test]
    fn factors_that_make_no_pause_change_nothing() {
        for factors in [-2.0..=-1.0, f64::NAN..=f64::NAN, f64::MAX..=f64::MAX, f64::INFINITY..=f64::INFINITY] {
            assert_eq!(jittered(PAUSE, factors), PAUSE);
        }
    }

    #[test]
    fn every_position_comes_and_no_other() {
        let positions: HashSet<usize> = (0..1000).map(|_| position(5)).collect();
        assert_eq!(positions, (0..5).collect());
        assert_eq!((position(1), position(0)), (0, 0));
    }

    #[test]
    fn bytes_are_filled_to_the_last() {
        let mut ored = [0_u8; 1024];
        for _ in 0..16 {
            let mut bytes = [0; 1024];
            fill(&mut bytes);
            ored.iter_mut().zip(bytes).for_each(|(all, byte)| *all |= byte);
        }
        assert!(ored.iter().all(|byte| *byte != 0), "a byte was never filled");
    }
}
