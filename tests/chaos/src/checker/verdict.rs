//! What the checker says of a run, for people and for reports.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde::Serialize;

use super::findings::{Findings, Violation, seconds};
use super::ops::Op;
use super::rules::Rule;
use super::times::Times;
use crate::history::{History, NEMESIS};

/// The figures of a run. What a fault excuses is counted in `excused` only.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Figures {
    /// Grants, levels of sessions included.
    pub grants: u64,
    /// Windows that began within another one which they must not meet.
    pub overlaps: u64,
    /// Grants with the token of another grant.
    pub duplicate_tokens: u64,
    /// Grants with a smaller token than one that had returned before their call.
    pub backward_tokens: u64,
    /// Requests that a register took after one of a later holder.
    pub stale_writes_accepted: u64,
    /// Updates that were lost although they went with tokens.
    pub lost_updates: u64,
    /// Updates that were lost without tokens, excused or not.
    pub unfenced_losses: u64,
    /// Calls that never returned.
    pub unresolved: u64,
    /// From the last that a killed client saw of its lease to the next grant, in milliseconds: the 99th percentile.
    pub takeover_p99_ms: Option<u64>,
    /// The same, less the lease.
    pub takeover_after_lease_p99_ms: Option<u64>,
    /// From the end of the wait limit to the answer, of the calls that came to that end, in milliseconds: the 99th percentile.
    pub wait_overshoot_p99_ms: Option<u64>,
    /// From the deadline to when a running client noticed the loss, in milliseconds: the 99th percentile.
    pub loss_overdue_p99_ms: Option<u64>,
    /// What faults excuse: `rule (fault)`, and how often.
    pub excused: BTreeMap<String, u64>,
}

pub(super) fn figures(ops: &[Op<'_>], findings: &Findings<'_>, times: &mut Times) -> Figures {
    let count = |rule: Rule| findings.counts.get(&rule).copied().unwrap_or_default();
    let excused = findings.excused.iter();
    let unfenced = excused.clone().filter(|((rule, _), _)| *rule == Rule::UnfencedLoss).map(|(_, times)| times);
    Figures {
        grants: ops.iter().filter(|op| op.grant.is_some()).count() as u64,
        overlaps: count(Rule::Overlap) + count(Rule::ReaderBesideWriter),
        duplicate_tokens: count(Rule::DuplicateToken) + count(Rule::StaleAttach),
        backward_tokens: count(Rule::BackwardToken),
        stale_writes_accepted: count(Rule::StaleWrite),
        lost_updates: count(Rule::LostUpdate),
        unfenced_losses: count(Rule::UnfencedLoss) + unfenced.sum::<u64>(),
        unresolved: count(Rule::Unresolved),
        takeover_p99_ms: times.take_over.p99(),
        takeover_after_lease_p99_ms: times.take_over_after_lease.p99(),
        wait_overshoot_p99_ms: times.wait_overshoot.p99(),
        loss_overdue_p99_ms: times.loss_overdue.p99(),
        excused: excused.map(|((rule, fault), times)| (format!("{rule} ({fault})"), *times)).collect(),
    }
}

/// What the checker says of a run.
#[derive(Clone, Debug)]
pub struct Verdict {
    pub figures: Figures,
    /// What is wrong; of one rule at most twenty.
    pub(super) violations: Vec<Violation>,
    /// How often each rule is broken without an excuse.
    pub broken: BTreeMap<Rule, u64>,
}

impl Verdict {
    /// Nothing is wrong that no fault excuses.
    pub fn passed(&self) -> bool {
        self.broken.is_empty()
    }

    /// Each violation: a sentence, and below it the lines that show it, with file and moment.
    pub fn explain(&self, history: &History) -> String {
        let start = history.lines.first().map_or(0, |line| line.record.at);
        let mut text = String::new();
        for violation in &self.violations {
            let _ = writeln!(text, "{}: {}", violation.rule, violation.what);
            for line in violation.lines.iter().filter_map(|line| history.lines.get(*line)) {
                let (record, place) = (&line.record, history.place(line));
                let _ = writeln!(text, "    {place}  {}  {}", seconds(start, record.at), who_did_what(record));
            }
        }
        for (rule, times) in &self.broken {
            let _ = writeln!(text, "{rule}: {times} in all");
        }
        text
    }
}

fn who_did_what(record: &crate::history::Record) -> String {
    let who = match record.client {
        NEMESIS => "the nemesis".to_owned(),
        client => format!("client {client}, task {}, op {}", record.task, record.op),
    };
    // As it stands in the file; an event can always be written, because it was read.
    format!("{who}: {}", serde_json::to_string(&record.event).unwrap_or_default())
}
