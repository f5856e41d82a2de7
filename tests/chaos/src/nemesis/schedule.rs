//! Which fault comes when: drawn from the seed before the run, so that a seed gives the same schedule again.

use std::fmt;
use std::time::Duration;

use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};

use crate::fault::Fault;

/// Before the first fault clients connect, and after the last one everything comes back.
const CALM_BEFORE: u64 = 1000;
const CALM_AFTER: u64 = 2500;

/// How long a fault lasts, and how long nothing comes after it, in milliseconds.
const LASTS: std::ops::Range<u64> = 200..3000;
const PAUSE: std::ops::Range<u64> = 200..1500;

/// One fault of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Planned {
    /// From the beginning of the run.
    pub(crate) at: Duration,
    pub(crate) lasts: Duration,
    pub(crate) fault: Fault,
    /// Which client, server, link or key, and how far a clock jumps: each takes from it what it needs.
    pub(crate) choice: u64,
}

impl Planned {
    /// The one of these that is hit.
    pub(super) fn one_of<T: Copy>(&self, all: &[T]) -> T {
        all[usize::try_from(self.choice).unwrap_or(0) % all.len()]
    }
}

impl fmt::Display for Planned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (at, lasts) = (self.at.as_secs_f64(), self.lasts.as_secs_f64());
        write!(f, "{at:7.2} s  for {lasts:4.2} s  {} ({})", self.fault.name(), self.choice)
    }
}

/// One fault after the other. Each kind comes once before any comes again.
pub(crate) fn draw(seed: u64, duration: Duration, kinds: &[Fault]) -> Vec<Planned> {
    let mut random = StdRng::seed_from_u64(seed);
    let end = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX).saturating_sub(CALM_AFTER);
    let (mut at, mut deck, mut planned) = (CALM_BEFORE, Vec::new(), Vec::new());
    while !kinds.is_empty() {
        if deck.is_empty() {
            deck = kinds.to_vec();
            deck.shuffle(&mut random);
        }
        // Most are short, so that there are many.
        let lasts = random.random_range(LASTS).min(random.random_range(LASTS));
        if at + lasts > end {
            break;
        }
        let Some(fault) = deck.pop() else { break };
        planned.push(Planned {
            at: Duration::from_millis(at),
            lasts: Duration::from_millis(lasts),
            fault,
            choice: random.random_range(0..1 << 20),
        });
        at += lasts + random.random_range(PAUSE);
    }
    planned
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fault::ON_THE_WAY;

    #[test]
    fn a_seed_gives_the_same_schedule_again_and_each_kind_comes_within_a_minute_one_at_a_time() {
        let minute = Duration::from_secs(60);
        for seed in 0..50 {
            let drawn = draw(seed, minute, ON_THE_WAY);
            assert_eq!(drawn, draw(seed, minute, ON_THE_WAY));
            assert_ne!(drawn, draw(seed + 1, minute, ON_THE_WAY));
            assert!(ON_THE_WAY.iter().all(|kind| drawn.iter().any(|planned| planned.fault == *kind)), "seed {seed}");
            assert!(drawn.windows(2).all(|pair| pair[0].at + pair[0].lasts < pair[1].at), "seed {seed}");
            assert!(drawn.iter().all(|planned| planned.at + planned.lasts < Duration::from_secs(58)), "seed {seed}");
        }
        assert_eq!(draw(1, Duration::from_secs(3), ON_THE_WAY), []);
        assert_eq!(draw(1, minute, &[]), []);
    }
}
