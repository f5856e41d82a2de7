//! The log of a run, the check that the lock was one, and the figures that are computed from the log.

use std::collections::BTreeMap;
use std::ops::Range;

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

/// The log of one run of one contender.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Log {
    pub(crate) spans: Vec<HoldSpan>,
    /// Processor time of the clients in microseconds, for all spans together.
    pub(crate) cpu: u64,
}

/// The time in which one task held one key, in nanoseconds of the monotonic clock, which all processes of the machine share.
/// Both ends are read inside the hold: `acquired` after acquire has returned, `releasing` before release is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "[u64; 4]", into = "[u64; 4]")]
pub(crate) struct HoldSpan {
    pub(crate) task: u64,
    pub(crate) acquired: u64,
    pub(crate) releasing: u64,
    /// The fencing token; 0 if the lock has none.
    pub(crate) token: u64,
}

impl From<[u64; 4]> for HoldSpan {
    fn from([task, acquired, releasing, token]: [u64; 4]) -> Self {
        Self { task, acquired, releasing, token }
    }
}

impl From<HoldSpan> for [u64; 4] {
    fn from(span: HoldSpan) -> Self {
        [span.task, span.acquired, span.releasing, span.token]
    }
}

/// The keys that the tasks of a run acquire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Keys {
    /// Each task its own key, so that nobody waits.
    Own,
    /// All tasks the same key.
    Shared,
}

/// The figures of one run, under the names below, and the distribution of its latencies.
#[derive(Clone, Debug)]
pub(crate) struct Sample {
    /// All acquisitions of the run, also those of its warm-up.
    pub(crate) acquisitions: usize,
    pub(crate) figures: BTreeMap<&'static str, f64>,
    /// In nanoseconds: of cycles if each task has its own key, of hand-offs to another task if all share one.
    pub(crate) latencies: Histogram<u64>,
}

impl Sample {
    /// Of things that were timed, with the figures of their distribution. What took place not once took none in 0 µs.
    pub(crate) fn timed(acquisitions: usize, latencies: Histogram<u64>) -> Self {
        let micros = |share| latencies.value_at_quantile(share) as f64 / 1e3;
        let figures = [(P50, micros(0.5)), (P99, micros(0.99))].into_iter().filter(|_| !latencies.is_empty()).collect();
        Self { acquisitions, figures, latencies }
    }
}

pub(crate) const PER_SECOND: &str = "cycles/s";
pub(crate) const P50: &str = "p50, µs";
pub(crate) const P99: &str = "p99, µs";
pub(crate) const CPU: &str = "client CPU, µs/cycle";
/// Processor time that the server used, for each cycle of all clients.
pub(crate) const SERVER_CPU: &str = "server CPU, µs/cycle";
pub(crate) const COMMANDS: &str = "store commands per acquisition";
/// Calls of the server's commands for each cycle, also those that a script makes.
pub(crate) const CALLS: &str = "calls per cycle";
/// Errors 1213 of MySQL.
pub(crate) const DEADLOCKS: &str = "deadlock errors";
/// Connections to the store, and its memory, when all clients have connected.
pub(crate) const CONNECTIONS: &str = "connections to the store";
pub(crate) const MEMORY: &str = "memory of the store, MB";
pub(crate) const HAND_OFFS: &str = "hand-offs to another task/s";
pub(crate) const JAIN: &str = "Jain index over tasks";
pub(crate) const STARVED: &str = "tasks never served";
pub(crate) const OF_THE_IDEAL: &str = "share of the ideal rate";
pub(crate) const COST: &str = "µs per cycle";
pub(crate) const HOLD: &str = "mean hold, µs";

/// Whether a smaller value of this figure is better: of all but rates and shares.
pub(crate) fn less_is_better(figure: &str) -> bool {
    !figure.ends_with("/s") && ![JAIN, OF_THE_IDEAL].contains(&figure)
}

impl Log {
    /// Checks that the lock was one: two spans of one key never overlap, and every token is larger than the one before.
    ///
    /// # Errors
    /// The first two spans that break the rule.
    pub(crate) fn check(&self, keys: Keys) -> Result<(), String> {
        let mut by_key: BTreeMap<u64, Vec<HoldSpan>> = BTreeMap::new();
        for span in &self.spans {
            let key = if keys == Keys::Own { span.task } else { 0 };
            by_key.entry(key).or_default().push(*span);
        }
        by_key.into_values().try_for_each(|mut spans| {
            spans.sort_unstable_by_key(|span| span.acquired);
            spans.windows(2).try_for_each(|pair| agree(pair[0], pair[1]))
        })
    }

    /// The figures of the acquisitions within `window`, for a run with this many tasks.
    pub(crate) fn sample(&self, keys: Keys, tasks: usize, window: &Range<u64>) -> Sample {
        let mut inside: Vec<HoldSpan> =
            self.spans.iter().filter(|span| window.contains(&span.acquired)).copied().collect();
        inside.sort_unstable_by_key(|span| span.acquired);
        let seconds = (window.end - window.start) as f64 / 1e9;
        let latencies = match keys {
            Keys::Own => cycles(&inside),
            Keys::Shared => handoffs(&inside),
        };
        let served = served(&inside, tasks);
        let held: u64 = inside.iter().map(|span| span.releasing - span.acquired).sum();
        let mut sample = Sample::timed(self.spans.len(), latencies);
        sample.figures.extend([
            (PER_SECOND, inside.len() as f64 / seconds),
            (CPU, self.cpu as f64 / self.spans.len().max(1) as f64),
            (HOLD, held as f64 / 1e3 / inside.len().max(1) as f64),
            (JAIN, jain(&served)),
            (STARVED, served.iter().filter(|count| **count == 0).count() as f64),
        ]);
        if keys == Keys::Shared {
            sample.figures.insert(HAND_OFFS, sample.latencies.len() as f64 / seconds);
        }
        sample
    }
}

fn agree(first: HoldSpan, second: HoldSpan) -> Result<(), String> {
    if second.acquired < first.releasing {
        return Err(format!("two held one key at the same time: {first:?} and {second:?}"));
    }
    if first.token != 0 && second.token <= first.token {
        return Err(format!("a later grant has no greater token: {first:?} and {second:?}"));
    }
    Ok(())
}

/// The times from one acquisition to the next of the same task, which does nothing in between.
fn cycles(sorted: &[HoldSpan]) -> Histogram<u64> {
    let mut latencies = histogram();
    let mut last: BTreeMap<u64, u64> = BTreeMap::new();
    for span in sorted {
        if let Some(before) = last.insert(span.task, span.acquired) {
            latencies.saturating_record(span.acquired - before);
        }
    }
    latencies
}

/// The times from a call of release to the acquisition by another task.
fn handoffs(sorted: &[HoldSpan]) -> Histogram<u64> {
    let mut latencies = histogram();
    for pair in sorted.windows(2).filter(|pair| pair[0].task != pair[1].task) {
        latencies.saturating_record(pair[1].acquired.saturating_sub(pair[0].releasing));
    }
    latencies
}

/// An empty histogram for 1 ns to a minute, with three significant digits.
pub(crate) fn histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, 60_000_000_000, 3).expect("the bounds are in order")
}

fn served(spans: &[HoldSpan], tasks: usize) -> Vec<u64> {
    let mut served = vec![0; tasks];
    for span in spans {
        if let Some(count) = usize::try_from(span.task).ok().and_then(|task| served.get_mut(task)) {
            *count += 1;
        }
    }
    served
}

/// The Jain index: 1 if all tasks were served equally often, 1/n if one of n was served alone.
fn jain(served: &[u64]) -> f64 {
    let sum: f64 = served.iter().map(|count| *count as f64).sum();
    let squares: f64 = served.iter().map(|count| (*count as f64).powi(2)).sum();
    if squares == 0.0 { 0.0 } else { sum * sum / (served.len() as f64 * squares) }
}
