//! Random histories: longer, and with more callers, than everything that can happen could be followed.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};

use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};

use super::configs::HISTORIES;
use super::explore::carefully;
use super::world::{Checked, World};

/// How many histories are played in one run of the tests, and how long each is.
const SEEDS: u64 = 10_000;
const STEPS: usize = 300;
/// One in so many faults that could be is.
const FAULTS: u32 = 12;

/// Plays the history of a seed, and follows it to its end. `log` is told each step, if it is there.
fn play(seed: u64, mut log: Option<&mut String>) -> Checked {
    let mut random = StdRng::seed_from_u64(seed);
    let config = HISTORIES[usize::try_from(seed).unwrap() % HISTORIES.len()];
    let mut world = World::new(config);
    for _ in 0..STEPS {
        let mut moves = world.moves();
        if !random.random_ratio(1, FAULTS) {
            moves.retain(|step| step.fault().is_none());
        }
        let Some(step) = moves.choose(&mut random).copied() else { continue };
        if let Some(log) = &mut log {
            let _ = write!(log, "\n  {:?} {step:?} {}", world.now, world.about(step));
        }
        let taken = carefully(|| world.take(step));
        if let Some(log) = log.as_mut().filter(|_| !world.seen.is_empty()) {
            let _ = write!(log, ": {}", world.seen.join(", "));
        }
        taken?;
    }
    carefully(|| world.settles())
}

/// The first of these seeds whose history breaks something.
fn first_broken(seeds: u64) -> Option<u64> {
    let (next, found) = (AtomicU64::new(0), AtomicU64::new(u64::MAX));
    let plays = || {
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= seeds || found.load(Ordering::Relaxed) < seed {
                return;
            }
            if play(seed, None).is_err() {
                found.fetch_min(seed, Ordering::Relaxed);
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(plays);
        }
    });
    Some(found.into_inner()).filter(|seed| *seed < u64::MAX)
}

/// What a seed's history came to, step by step.
fn history_of(seed: u64) -> String {
    let mut log = format!("LEASEHOLD_SEED={seed}");
    match play(seed, Some(&mut log)) {
        Ok(()) => log += "\n  nothing is broken",
        Err(violation) => {
            let _ = write!(log, "\n  {:?} is broken: {}", violation.property, violation.what);
        }
    }
    log
}

#[test]
fn nothing_breaks_in_ten_thousand_histories() {
    if let Ok(seed) = std::env::var("LEASEHOLD_SEED") {
        let log = history_of(seed.parse().unwrap());
        println!("{log}");
        return assert!(log.ends_with("nothing is broken"));
    }
    if let Some(seed) = first_broken(SEEDS / super::share() as u64) {
        panic!("{}", history_of(seed));
    }
}

#[test]
fn a_seed_is_one_history() {
    for seed in 0..HISTORIES.len() as u64 {
        let log = history_of(seed);
        assert!(log.lines().count() > STEPS / 2, "{log}");
        assert_eq!(log, history_of(seed));
    }
}
