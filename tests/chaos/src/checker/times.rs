//! How long things took: take-overs, waits, losses; and when faults were on.

use std::collections::HashMap;

use super::findings::Findings;
use super::leases::Lease;
use super::ops::{At, Fault, Op, nanos};
use super::rules::{Limits, Rule};
use crate::history::{History, Mode, Target};

/// A percentile, and of how many samples at least: of fewer it would be chance.
type Share = (usize, usize);

const NINE_OF_TEN: Share = (90, 20);
const TYPICAL: Share = (50, 5);

/// Milliseconds, each with the line where it ended.
#[derive(Debug, Default)]
pub(super) struct Samples(Vec<(u64, usize)>);

impl Samples {
    pub(super) fn add(&mut self, nanos: u64, line: usize) {
        self.0.push((nanos / 1_000_000, line));
    }

    /// The 99th percentile.
    pub(super) fn p99(&mut self) -> Option<u64> {
        self.at_percent(99).map(|(sample, _)| sample)
    }

    fn at_percent(&mut self, percent: usize) -> Option<(u64, usize)> {
        self.0.sort_unstable();
        let last = self.0.len().checked_sub(1)?;
        self.0.get((self.0.len() * percent).div_ceil(100).saturating_sub(1).min(last)).copied()
    }

    /// Finds that this percentile is above a limit, once.
    fn hold(&mut self, (percent, fewest): Share, limit: Option<u64>, rule: Rule, findings: &mut Findings<'_>) {
        let (count, late) = (self.0.len(), self.at_percent(percent).zip(limit));
        if let Some(((sample, line), limit)) = late.filter(|((sample, _), limit)| sample > limit && count >= fewest) {
            let what = format!("{sample} ms is the percentile {percent} of {count}, and {limit} ms the limit");
            findings.add(rule, vec![line], what);
        }
    }
}

/// The times of a run.
#[derive(Debug, Default)]
pub(super) struct Times {
    /// From the last that a killed client saw of its lease, to the next grant of its key, or from when that was asked for.
    pub(super) take_over: Samples,
    /// The same less the lease.
    pub(super) take_over_after_lease: Samples,
    pub(super) wait_overshoot: Samples,
    pub(super) loss_overdue: Samples,
    /// How long keys were asked for after they had been released, or a guard was dropped: where somebody waited, and where nobody
    /// did. A release may serve who waits, and free the key for nobody else: so those are apart.
    pub(super) released: [Samples; 2],
    pub(super) dropped: [Samples; 2],
}

impl Times {
    pub(super) fn hold(&mut self, limits: &Limits, findings: &mut Findings<'_>) {
        self.wait_overshoot.hold(TYPICAL, limits.wait_overshoot_ms, Rule::LateAnswer, findings);
        // A release that frees nothing still serves most waiters of the process.
        for (samples, share) in [(&mut self.released, NINE_OF_TEN), (&mut self.dropped, TYPICAL)] {
            for samples in samples {
                samples.hold(share, limits.hand_over_ms, Rule::SlowHandOver, findings);
            }
        }
    }
}

/// The stretches of time in which one or more faults were on: begin, end, and how long all of those until there are.
struct Spans(Vec<(u64, u64, u64)>);

impl Spans {
    /// Of faults in the order in which they began, each for so much longer.
    fn of(faults: &[&Fault<'_>], longer: u64) -> Self {
        let mut spans: Vec<(u64, u64, u64)> = Vec::new();
        for fault in faults {
            let (began, ended) = (fault.began.at, fault.ended.saturating_add(longer));
            match spans.last_mut() {
                Some((_, last, all)) if began <= *last => {
                    *all += ended.saturating_sub(*last);
                    *last = ended.max(*last);
                }
                last => {
                    let before = last.map_or(0, |(.., all)| *all);
                    spans.push((began, ended, before + (ended - began)));
                }
            }
        }
        Self(spans)
    }

    /// Whether one of them meets the stretch between these moments.
    fn meet(&self, from: u64, to: u64) -> bool {
        let begun = self.0.partition_point(|(began, ..)| *began <= to);
        self.0[..begun].last().is_some_and(|(_, ended, _)| *ended >= from)
    }

    /// How long they are, until this moment.
    fn until(&self, moment: u64) -> u64 {
        let begun = self.0.partition_point(|(began, ..)| *began < moment);
        self.0[..begun].last().map_or(0, |(_, ended, all)| all - ended.saturating_sub(moment))
    }
}

/// When faults hit, and which clients were killed.
pub(super) struct Hits {
    servers: Spans,
    /// The same, for [`AFTER`] longer.
    stormy: Spans,
    /// The faults of a client, and when the one began that ended it.
    clients: HashMap<u32, (Spans, Option<At>)>,
}

impl Hits {
    pub(super) fn of(history: &History, faults: &[Fault<'_>]) -> Self {
        let mut last: HashMap<u32, u64> = HashMap::new();
        for line in &history.lines {
            last.insert(line.record.client, line.record.at);
        }
        let mut of_clients: HashMap<u32, Vec<&Fault<'_>>> = HashMap::new();
        let mut elsewhere = Vec::new();
        for fault in faults {
            match fault.target {
                Target::Client(client) => of_clients.entry(*client).or_default().push(fault),
                _ => elsewhere.push(fault),
            }
        }
        let clients = of_clients.into_iter().map(|(client, faults)| {
            let last = last.get(&client).copied().unwrap_or(0);
            // It wrote nothing after it.
            let ends = |fault: &&&Fault<'_>| {
                if fault.ended == u64::MAX { fault.began.at >= last } else { fault.ended >= last }
            };
            let killed = faults.iter().find(ends).map(|fault| fault.began);
            (client, (Spans::of(&faults, 0), killed))
        });
        let clients = clients.collect();
        Self { servers: Spans::of(&elsewhere, 0), stormy: Spans::of(&elsewhere, AFTER), clients }
    }

    /// How much of the time between these moments was without a fault of servers, or of the way to them.
    pub(super) fn calm(&self, from: u64, to: u64) -> u64 {
        (to - from) - (self.stormy.until(to) - self.stormy.until(from))
    }

    /// A fault hit the client between these moments.
    pub(super) fn hit(&self, client: u32, from: u64, to: u64) -> bool {
        self.clients.get(&client).is_some_and(|(spans, _)| spans.meet(from, to))
    }

    /// When the fault began that ended the client.
    pub(super) fn killed(&self, client: u32) -> Option<At> {
        self.clients.get(&client)?.1
    }
}

/// How long clients may take to come back to a store after a fault, in nanoseconds.
const AFTER: u64 = 2_000_000_000;

/// Measures waits, losses, and how soon the keys of killed clients were taken over.
pub(super) fn measure((ops, leases): (&[Op<'_>], &[Lease<'_>]), hits: &Hits) -> Times {
    let (mut times, calls) = (Times::default(), calls(ops));
    let mut granted: Vec<_> = leases.iter().map(|lease| (lease.key, lease.granted, lease.mode)).collect();
    granted.sort_unstable_by_key(|(key, at, _)| (*key, *at));
    for op in ops {
        // A try has no limit: it ends with the store's answer.
        if let Some((at, limit)) = op.answered.zip(op.wait_ms.filter(|limit| *limit > 0))
            && let over = op.called.at.saturating_add(nanos(limit))
            && at.at >= over
            && !hits.hit(op.client, op.called.at, at.at)
        {
            times.wait_overshoot.add(at.at - over, at.line);
        }
        if let Some((at, Some(overdue))) = op.lost {
            times.loss_overdue.add(nanos(overdue), at.line);
        }
        let Some(grant) = op.grant.filter(|_| op.kept() && hits.killed(op.client).is_some()) else { continue };
        let last = op.last_held().unwrap_or(grant.at).at;
        let after = granted.partition_point(|(key, at, _)| (*key, at.at) <= (op.key, last));
        let of_key = granted[after..].iter().take_while(|(key, ..)| *key == op.key);
        // Only writers wait for a reader.
        let next = of_key.map(|(_, at, mode)| (at, mode)).find(|(_, mode)| [op.mode, **mode] != [Mode::Shared; 2]);
        let Some((next, _)) = next else { continue };
        // A store that is silent takes its own time.
        if !hits.servers.meet(last, next.at) {
            // From when on somebody asked for the key, of those who were not answered by then.
            let place = calls.partition_point(|(key, until, _)| (*key, *until) <= (op.key, last));
            let asked = calls.get(place).filter(|(key, ..)| *key == op.key).map_or(last, |(.., called)| *called);
            let took = next.at.saturating_sub(asked.max(last));
            times.take_over.add(took, next.line);
            times.take_over_after_lease.add(took.saturating_sub(grant.lease), next.line);
        }
    }
    times
}

/// By key and answer: the ops, each with the first call of it and those behind it of that key.
fn calls<'h>(ops: &[Op<'h>]) -> Vec<(&'h str, u64, u64)> {
    let until = |op: &Op<'_>| op.answered.map_or(u64::MAX, |at| at.at);
    let mut calls: Vec<_> = ops.iter().map(|op| (op.key, until(op), op.called.at)).collect();
    calls.sort_unstable();
    for place in (1..calls.len()).rev() {
        if calls[place].0 == calls[place - 1].0 {
            calls[place - 1].2 = calls[place - 1].2.min(calls[place].2);
        }
    }
    calls
}
