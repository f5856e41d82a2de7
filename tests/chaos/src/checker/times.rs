//! How long things took: take-overs, waits, losses; and what never came to an end.

use super::findings::Findings;
use super::leases::Lease;
use super::ops::{At, Fault, Op};
use super::terms::{Limits, Rule};
use super::work::Work;
use crate::history::{History, Mode, Target};

/// A percentile, and of how many samples at least.
type Share = (usize, usize);

const NEARLY_ALL: Share = (99, 1);
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

    pub(super) fn len(&self) -> u64 {
        self.0.len() as u64
    }

    /// Finds that this percentile is above a limit, once; of fewer samples than those it would be chance.
    fn hold(&mut self, (percent, fewest): Share, limit: Option<u64>, rule: Rule, findings: &mut Findings<'_>) {
        let late = self.at_percent(percent).zip(limit).filter(|((sample, _), limit)| sample > limit);
        let late = late.filter(|_| self.0.len() >= fewest);
        if let Some(((sample, line), limit)) = late {
            let what = format!("{sample} ms is the percentile {percent} of {}, and {limit} ms the limit", self.len());
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
    /// From an unknown outcome to the next grant of its key, or from when that was asked for.
    pub(super) resolved: Samples,
    pub(super) wait_overshoot: Samples,
    pub(super) loss_overdue: Samples,
    /// How long keys were asked for after they had been given back. A release may serve who waits, and free the key for nobody
    /// else: so those are apart.
    pub(super) released: Samples,
    pub(super) released_unawaited: Samples,
    pub(super) dropped: Samples,
    pub(super) dropped_unawaited: Samples,
}

impl Times {
    pub(super) fn hold(&mut self, limits: &Limits, findings: &mut Findings<'_>) {
        let (hand_over, slow) = (limits.hand_over_ms, Rule::SlowHandOver);
        self.take_over_after_lease.hold(NEARLY_ALL, limits.take_over_after_lease_ms, Rule::SlowTakeOver, findings);
        self.wait_overshoot.hold(NEARLY_ALL, limits.wait_overshoot_ms, Rule::LateAnswer, findings);
        self.wait_overshoot.hold(TYPICAL, limits.typical_wait_overshoot_ms, Rule::LateAnswer, findings);
        self.loss_overdue.hold(NEARLY_ALL, limits.loss_overdue_ms, Rule::LateLoss, findings);
        // A release that frees nothing still serves most waiters of the process.
        self.released.hold(NINE_OF_TEN, hand_over, slow, findings);
        self.released_unawaited.hold(NINE_OF_TEN, hand_over, slow, findings);
        self.dropped.hold(TYPICAL, hand_over, slow, findings);
        self.dropped_unawaited.hold(TYPICAL, hand_over, slow, findings);
    }
}

/// Stretches of time, for the question whether one of them meets another stretch.
struct Spans {
    /// When each began, and the latest end of those that began until then.
    begun: Vec<(u64, u64)>,
}

impl Spans {
    /// Of faults in the order in which they began.
    fn of<'f>(faults: impl Iterator<Item = &'f Fault<'f>>) -> Self {
        let mut latest = 0;
        let begun = faults.map(|fault| {
            latest = latest.max(fault.ended);
            (fault.began.at, latest)
        });
        Self { begun: begun.collect() }
    }

    fn meet(&self, from: u64, to: u64, work: &Work) -> bool {
        let until = work.count_before(&self.begun, |(began, _)| *began <= to);
        until.checked_sub(1).is_some_and(|last| self.begun[last].1 >= from)
    }
}

/// When faults hit, and which clients were killed.
pub(super) struct Hits {
    servers: Spans,
    /// The stretches of time in which one or more of them were on, and for [`AFTER`] longer: begin, end, and how long all of
    /// those until there are.
    stormy: Vec<(u64, u64, u64)>,
    /// Sorted by client: its faults, and when the one began that ended it.
    clients: Vec<(u32, Spans, Option<At>)>,
}

impl Hits {
    pub(super) fn of(history: &History, faults: &[Fault<'_>], work: &Work) -> Self {
        let client = |fault: &&Fault<'_>| match fault.target {
            Target::Client(client) => Some(*client),
            _ => None,
        };
        let mut of_clients: Vec<&Fault<'_>> = faults.iter().filter(|fault| client(fault).is_some()).collect();
        work.sort(&mut of_clients, |fault| (client(fault), fault.began));
        let mut last: Vec<(u32, u64)> = history.lines.iter().map(|line| (line.record.client, line.record.at)).collect();
        work.sort(&mut last, |(client, at)| (*client, std::cmp::Reverse(*at)));
        last.dedup_by_key(|(client, _)| *client);
        let groups = of_clients.chunk_by(|one, other| client(one) == client(other));
        let clients = groups.filter_map(|faults| {
            let client = client(&faults[0])?;
            let place = work.count_before(&last, |(other, _)| *other < client);
            let last = last.get(place).filter(|(other, _)| *other == client).map_or(0, |(_, at)| *at);
            // It wrote nothing after it.
            let ends = |fault: &&&Fault<'_>| {
                if fault.ended == u64::MAX { fault.began.at >= last } else { fault.ended >= last }
            };
            let killed = faults.iter().find(ends).map(|fault| fault.began);
            Some((client, Spans::of(faults.iter().copied()), killed))
        });
        let elsewhere = faults.iter().filter(|fault| client(fault).is_none());
        Self { servers: Spans::of(elsewhere.clone()), stormy: stormy(elsewhere), clients: clients.collect() }
    }

    /// How much of the time between these moments was without a fault of servers, or of the way to them.
    pub(super) fn calm(&self, from: u64, to: u64, work: &Work) -> u64 {
        let stormy_until = |moment: u64| {
            let begun = work.count_before(&self.stormy, |(began, ..)| *began < moment);
            let last = begun.checked_sub(1).map(|last| self.stormy[last]);
            last.map_or(0, |(_, ended, all)| all - ended.saturating_sub(moment))
        };
        (to - from) - (stormy_until(to) - stormy_until(from))
    }

    fn of_client(&self, client: u32, work: &Work) -> Option<&(u32, Spans, Option<At>)> {
        let place = work.count_before(&self.clients, |(other, ..)| *other < client);
        self.clients.get(place).filter(|(other, ..)| *other == client)
    }

    /// A fault hit the client between these moments.
    pub(super) fn hit(&self, client: u32, from: u64, to: u64, work: &Work) -> bool {
        self.of_client(client, work).is_some_and(|(_, spans, _)| spans.meet(from, to, work))
    }

    /// When the fault began that ended the client.
    pub(super) fn killed(&self, client: u32, work: &Work) -> Option<At> {
        self.of_client(client, work)?.2
    }
}

/// How long clients may take to come back to a store after a fault, in nanoseconds.
const AFTER: u64 = 2_000_000_000;

/// Of faults in the order in which they began.
fn stormy<'f>(faults: impl Iterator<Item = &'f Fault<'f>>) -> Vec<(u64, u64, u64)> {
    let mut stretches: Vec<(u64, u64, u64)> = Vec::new();
    for fault in faults {
        let (began, ended) = (fault.began.at, fault.ended.saturating_add(AFTER));
        match stretches.last_mut() {
            Some((_, last, all)) if began <= *last => {
                *all += ended.saturating_sub(*last);
                *last = ended.max(*last);
            }
            last => {
                let before = last.map_or(0, |(.., all)| *all);
                stretches.push((began, ended, before + (ended - began)));
            }
        }
    }
    stretches
}

/// Of each key: when it was granted, and who asked for it.
struct Keys<'k> {
    /// By key and grant: all leases, and those of writers.
    granted: Vec<&'k Lease<'k>>,
    writers: Vec<&'k Lease<'k>>,
    /// By key and answer: the ops, each with the first call of it and those behind it of that key.
    answered: Vec<(&'k str, u64, u64)>,
}

impl<'k> Keys<'k> {
    fn of(ops: &'k [Op<'k>], leases: &'k [Lease<'k>], work: &Work) -> Self {
        let mut granted: Vec<_> = leases.iter().collect();
        work.sort(&mut granted, |lease| (lease.key, lease.granted));
        let writers = granted.iter().copied().filter(|lease| lease.mode == Mode::Exclusive).collect();
        let until = |op: &Op<'_>| op.answered.map_or(u64::MAX, |at| at.at);
        let mut answered: Vec<_> = ops.iter().map(|op| (op.key, until(op), op.called.at)).collect();
        work.sort(&mut answered, |(key, until, _)| (*key, *until));
        for place in (1..answered.len()).rev() {
            work.count();
            if answered[place].0 == answered[place - 1].0 {
                answered[place - 1].2 = answered[place - 1].2.min(answered[place].2);
            }
        }
        Self { granted, writers, answered }
    }

    /// The first grant after a moment that a lease of this mode stood in the way of.
    fn next_grant(&self, key: &str, mode: Mode, after: u64, work: &Work) -> Option<&'k Lease<'k>> {
        let leases = if mode == Mode::Exclusive { &self.granted } else { &self.writers };
        let place = work.count_before(leases, |lease| (lease.key, lease.granted.at) <= (key, after));
        leases.get(place).copied().filter(|lease| lease.key == key)
    }

    /// From when on somebody asked for the key, of those who were not answered by then.
    fn asked(&self, key: &str, after: u64, work: &Work) -> u64 {
        let place = work.count_before(&self.answered, |(other, until, _)| (*other, *until) <= (key, after));
        self.answered.get(place).filter(|(other, ..)| *other == key).map_or(after, |(.., called)| after.max(*called))
    }
}

/// Measures, and finds what never came to an end.
pub(super) fn measure(
    (ops, leases): (&[Op<'_>], &[Lease<'_>]),
    hits: &Hits,
    findings: &mut Findings<'_>,
    work: &Work,
) -> Times {
    let (mut times, keys) = (Times::default(), Keys::of(ops, leases, work));
    for op in ops {
        let killed = hits.killed(op.client, work).filter(|_| op.open());
        // A try has no limit: it ends with the store's answer.
        if let Some((at, limit)) = op.answered.zip(op.wait_ms.filter(|limit| *limit > 0))
            && let over = op.called.at.saturating_add(limit.saturating_mul(1_000_000))
            && at.at >= over
            && !hits.hit(op.client, op.called.at, at.at, work)
        {
            times.wait_overshoot.add(at.at - over, at.line);
        }
        if let Some((at, Some(overdue))) = op.lost {
            times.loss_overdue.add(overdue.saturating_mul(1_000_000), at.line);
        }
        if killed.is_some() && op.kept() {
            take_over(op, &keys, hits, &mut times, work);
        }
        if op.answered.is_none() && killed.is_none() {
            let what = format!("client {} asked for {:?} and got no answer, although it went on", op.client, op.key);
            findings.add(Rule::Unresolved, vec![op.called.line], what);
        }
        if let Some(unknown) = op.unknown.or(killed) {
            match keys.next_grant(op.key, op.mode, unknown.at, work) {
                Some(next) => {
                    let took = next.granted.at.saturating_sub(keys.asked(op.key, unknown.at, work));
                    times.resolved.add(took, next.granted.line);
                }
                None => never_again(op, unknown, findings),
            }
        }
    }
    times
}

fn take_over(op: &Op<'_>, keys: &Keys<'_>, hits: &Hits, times: &mut Times, work: &Work) {
    let Some(grant) = op.grant else { return };
    let last = op.held.unwrap_or(grant.at).at;
    let Some(next) = keys.next_grant(op.key, op.mode, last, work) else { return };
    let granted = next.granted.at;
    if hits.servers.meet(last, granted, work) {
        // A store that is silent takes its own time.
        return;
    }
    let took = granted.saturating_sub(keys.asked(op.key, last, work));
    times.take_over.add(took, next.granted.line);
    times.take_over_after_lease.add(took.saturating_sub(grant.lease_ms.saturating_mul(1_000_000)), next.granted.line);
}

/// The runner asks for every key at its end.
fn never_again(op: &Op<'_>, unknown: At, findings: &mut Findings<'_>) {
    let what = format!("{:?} was never granted again after client {} was left in the dark", op.key, op.client);
    findings.add(Rule::Unresolved, vec![op.called.line, unknown.line], what);
}
