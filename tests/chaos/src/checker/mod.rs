//! Judges a history: who held what when, which tokens were given, what the registers took, how long it took.
//!
//! The window of a lease is what its client knows: from the moment when the grant had returned, to the last moment at which the
//! guard said that it is held, or the call of a release that then said that it had been held until then. So a process that was
//! stopped claims nothing of that time.
//!
//! One register is protected by one key.

mod ends;
mod findings;
mod gaps;
mod leases;
mod ops;
mod requests;
mod rules;
mod times;
mod tokens;
mod verdict;
mod windows;

pub use rules::{Allowance, Limits, Rule, Terms};
pub use verdict::{Figures, Verdict};

use crate::history::History;
use findings::Findings;
use times::Hits;

/// Judges a history by these terms.
pub fn check(history: &History, terms: &Terms<'_>) -> Verdict {
    let start = history.lines.first().map_or(0, |line| line.record.at);
    let (ops, contradictions) = ops::ops(history);
    let (faults, others) = ops::faults(history);
    let mut findings = Findings::new(terms, &faults);
    for (line, why) in contradictions.into_iter().chain(others) {
        findings.add(Rule::Malformed, vec![line], why.to_owned());
    }
    let hits = Hits::of(history, &faults);
    ends::check(&ops, &hits, &mut findings);
    ends::outlived(&ops, (&faults, &hits), terms, &mut findings);
    ends::downgrades(&ops, &mut findings);
    let leases = leases::leases(&ops, &mut findings);
    windows::check(&leases, start, &mut findings);
    tokens::check(&leases, &mut findings);
    let sent = requests::sent(&ops, &leases);
    requests::stale(&sent, &leases, &mut findings);
    requests::lost_updates(&ops, &sent, &leases, &mut findings);
    let mut times = times::measure((&ops, &leases), &hits);
    gaps::check(&ops, &hits, terms.limits.stalled_ms, &mut times, &mut findings);
    times.hold(&terms.limits, &mut findings);
    let figures = verdict::figures(&ops, &findings, &mut times);
    Verdict { figures, broken: findings.counts, violations: findings.violations }
}
