//! Judges a history, in O(n log n): who held what when, which tokens were given, what the registers took, how long it took.
//!
//! The window of a lease is what its client knows: from the moment when the grant had returned, to the last moment at which the
//! guard said that it is held, or the call of a release that then said that it had been held until then. So a process that was
//! stopped claims nothing of that time.
//!
//! One register is protected by one key.

mod findings;
mod gaps;
mod leases;
mod linear;
mod ops;
mod requests;
mod terms;
mod times;
mod tokens;
mod verdict;
mod windows;
mod work;

use std::collections::BTreeMap;

pub use findings::Violation;
pub use terms::{Allowance, Limits, Rule, Terms};
pub use verdict::{Figures, Verdict};

use crate::history::History;
use findings::Findings;
use leases::Lease;
use ops::Op;
use requests::Sent;
use times::{Hits, Times};
use work::Work;

/// Judges a history by these terms.
pub fn check(history: &History, terms: &Terms<'_>) -> Verdict {
    let work = Work::default();
    let start = history.lines.first().map_or(0, |line| line.record.at);
    let (ops, contradictions) = ops::ops(history, &work);
    let (faults, others) = ops::faults(history, &work);
    let mut findings = Findings::new(terms, &faults);
    for (line, why) in contradictions.into_iter().chain(others) {
        findings.add(Rule::Malformed, vec![line], why.to_owned());
    }
    for op in &ops {
        if let Some(at) = op.held_after_end {
            let ended = op.lost.map(|(at, _)| at).or(op.detached).map(|at| at.line);
            let what = format!("client {} held {:?} after it had lost or detached it", op.client, op.key);
            findings.add(Rule::HeldAfterEnd, ended.into_iter().chain([at.line]).collect(), what);
        }
    }
    let leases = leases::leases(&ops, &mut findings, &work);
    windows::check(&leases, start, &mut findings, &work);
    tokens::check(&leases, &mut findings, &work);
    let sent = requests::sent(&ops, &leases, &work);
    requests::stale(&sent, &leases, &mut findings, &work);
    requests::lost_updates(&ops, &sent, &leases, &mut findings, &work);
    let undecided = linear::check(&sent, &mut findings, &work);
    let hits = Hits::of(history, &faults, &work);
    let mut times = times::measure((&ops, &leases), &hits, &mut findings, &work);
    gaps::check(&ops, &hits, terms.limits.stalled_ms, &mut times, &mut findings, &work);
    times.hold(&terms.limits, &mut findings);

    let mut figures = figures(&ops, &leases, &sent, &findings, &mut times);
    figures.events = history.lines.len() as u64;
    figures.undecided_registers = undecided;
    Verdict { figures, broken: findings.counts, violations: findings.violations, comparisons: work.counted() }
}

fn figures(
    ops: &[Op<'_>],
    leases: &[Lease<'_>],
    sent: &[Sent<'_>],
    findings: &Findings<'_>,
    times: &mut Times,
) -> Figures {
    let count = |rules: &[Rule]| rules.iter().map(|rule| findings.count(*rule)).sum();
    let of_rule = |(rule, fault): &(Rule, String)| format!("{rule} ({fault})");
    let excused: BTreeMap<String, u64> = findings.excused.iter().map(|(of, times)| (of_rule(of), *times)).collect();
    let unfenced = findings.excused.iter().filter(|((rule, _), _)| *rule == Rule::UnfencedLoss).map(|(_, times)| times);
    Figures {
        events: 0,
        grants: ops.iter().filter(|op| op.grant.is_some()).count() as u64,
        windows: leases.iter().filter(|lease| lease.window().is_some()).count() as u64,
        requests: sent.len() as u64,
        overlaps: count(&[Rule::Overlap, Rule::ReaderBesideWriter]),
        duplicate_tokens: count(&[Rule::DuplicateToken, Rule::StaleAttach]),
        backward_tokens: count(&[Rule::BackwardToken]),
        stale_writes_accepted: count(&[Rule::StaleWrite, Rule::NotLinearizable]),
        lost_updates: count(&[Rule::LostUpdate]),
        unfenced_losses: count(&[Rule::UnfencedLoss]) + unfenced.sum::<u64>(),
        undecided_registers: 0,
        unresolved: count(&[Rule::Unresolved]),
        take_overs: times.take_over.len(),
        takeover_p99_ms: times.take_over.p99(),
        takeover_after_lease_p99_ms: times.take_over_after_lease.p99(),
        resolved_p99_ms: times.resolved.p99(),
        wait_overshoot_p99_ms: times.wait_overshoot.p99(),
        loss_overdue_p99_ms: times.loss_overdue.p99(),
        excused,
    }
}
