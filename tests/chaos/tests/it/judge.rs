//! Judges bad histories beside good ones that differ from them by a line or two.

use leasehold_chaos::checker::{Limits, Rule, Terms, Verdict, check};
use leasehold_chaos::history::History;

use crate::story::{bad, good};

pub(crate) const STRICT: Limits = Limits {
    take_over_after_lease_ms: Some(250),
    wait_overshoot_ms: Some(50),
    typical_wait_overshoot_ms: Some(50),
    loss_overdue_ms: Some(10),
    hand_over_ms: Some(500),
    stalled_ms: Some(4000),
};

pub(crate) fn judged(history: &History) -> Verdict {
    check(history, &Terms { limits: STRICT, ..Terms::default() })
}

/// The good history passes, and the bad one breaks these rules and no others.
#[track_caller]
pub(crate) fn differ(rules: &[Rule], story: &str) {
    let history = good(story);
    let verdict = judged(&history);
    assert!(verdict.passed(), "the good one:\n{}", verdict.explain(&history));
    let history = bad(story);
    let verdict = judged(&history);
    let broken: Vec<Rule> = verdict.broken.keys().copied().collect();
    assert_eq!(broken, rules, "the bad one:\n{}", verdict.explain(&history));
}
