//! Keys that nobody is known to hold, while somebody asks for them: what a release that frees nothing looks like.
//!
//! How long such a gap is counts from the first call in it: were the key free, that would have been granted.
//!
//! A client that was killed or stopped, or did not learn the outcome of its call, may hold a key for as long as it can have a
//! lease of it, and counts as a holder for that time.

use super::findings::Findings;
use super::ops::{Op, nanos};
use super::rules::Rule;
use super::times::{Hits, Times};

/// What changes on a key, in the order in which changes of one moment count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Change {
    Asked,
    Held,
    Freed(By),
    /// Somebody asks no longer.
    Answered,
}

/// How a holder ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
enum By {
    Release,
    Drop,
    #[default]
    Other,
}

struct Point<'k> {
    key: &'k str,
    at: u64,
    change: Change,
    line: usize,
}

/// Measures how long each gap was asked for, and finds the gaps of more than `stalled_ms` of that time without a fault.
pub(super) fn check(
    ops: &[Op<'_>],
    hits: &Hits,
    stalled_ms: Option<u64>,
    times: &mut Times,
    findings: &mut Findings<'_>,
) {
    let mut points: Vec<Point<'_>> = ops.iter().flat_map(|op| points(op, hits)).collect();
    points.sort_by_key(|point| (point.key, point.at, point.change));
    for points in points.chunk_by(|one, other| one.key == other.key) {
        let mut key = Key::default();
        for point in points {
            key.pass(point, hits, times);
            let stalled = stalled_ms.is_some_and(|limit| key.gap.calm > nanos(limit));
            if stalled && !std::mem::replace(&mut key.gap.told, true) {
                let calm = key.gap.calm / 1_000_000;
                let what =
                    format!("{:?} was asked for {calm} ms without a fault, and nobody was known to hold it", point.key);
                findings.add(Rule::Stalled, vec![point.line], what);
            }
        }
    }
}

/// A stretch of time in which nobody is known to hold a key.
#[derive(Default)]
struct Gap {
    by: By,
    /// Somebody was waiting when it began.
    awaited: bool,
    /// When somebody asked first.
    asked: Option<u64>,
    /// How long somebody asked while no fault was on.
    calm: u64,
    told: bool,
}

#[derive(Default)]
struct Key {
    holders: u32,
    asking: u32,
    asked_since: u64,
    gap: Gap,
}

impl Key {
    /// Measures the gap that ends here, if it was asked for while no fault was on.
    fn pass(&mut self, point: &Point<'_>, hits: &Hits, times: &mut Times) {
        if self.asking > 0 && self.holders == 0 {
            self.gap.asked.get_or_insert(self.asked_since);
            self.gap.calm += hits.calm(self.asked_since, point.at);
        }
        self.asked_since = point.at;
        match point.change {
            Change::Asked => self.asking += 1,
            Change::Answered => self.asking -= 1,
            Change::Held => {
                self.holders += 1;
                let Gap { by, awaited, asked, .. } = self.gap;
                let since = asked.unwrap_or(point.at);
                let calm = hits.calm(since, point.at);
                let samples = match by {
                    By::Release => &mut times.released,
                    By::Drop => &mut times.dropped,
                    By::Other => return,
                };
                if self.holders == 1 && (calm > 0 || since == point.at) {
                    samples[usize::from(!awaited)].add(calm, point.line);
                }
            }
            Change::Freed(by) => {
                self.holders -= 1;
                if self.holders == 0 {
                    self.gap = Gap { by, awaited: self.asking > 0, ..Gap::default() };
                }
            }
        }
    }
}

fn points<'k>(op: &Op<'k>, hits: &Hits) -> Vec<Point<'k>> {
    let point = |at, change| Point { key: op.key, at, change, line: op.called.line };
    let killed = hits.killed(op.client);
    let last = op.answered.map(|at| at.at);
    let was_hit = hits.hit(op.client, op.called.at, last.unwrap_or(u64::MAX));
    let mut points = Vec::new();
    if let Some(answered) = last.filter(|_| !was_hit && !op.attach) {
        points.extend([point(op.called.at, Change::Asked), point(answered, Change::Answered)]);
    }
    let lease = op.grant.map_or(LEASE, |grant| grant.lease);
    let from = op.grant.filter(|_| !was_hit).map_or(op.called.at, |grant| grant.at.at);
    let leased = |at: u64| Some((at.saturating_add(lease), By::Other));
    let end = if let Some(at) = op.unknown {
        leased(at.at)
    } else if op.grant.is_none() {
        // Of a call that was hit, nobody knows what the store granted meanwhile.
        let until = last.or(killed.map(|at| at.at.saturating_add(lease)));
        until.filter(|_| was_hit).and_then(leased)
    } else if let Some(at) = op.lost_or_detached() {
        leased(at.at)
    } else if let Some(released) = op.released {
        Some((released.at, By::Release))
    } else if let Some(dropped) = op.release_called {
        Some((dropped.at, By::Drop))
    } else {
        leased(killed.map_or(u64::MAX, |at| at.at))
    };
    if let Some((until, by)) = end {
        points.extend([point(from, Change::Held), point(until.max(from), Change::Freed(by))]);
    }
    points
}

/// The lease of a call of which nobody knows the lease, in nanoseconds.
const LEASE: u64 = 2_000_000_000;
