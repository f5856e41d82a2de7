//! Collects what is found, and decides whether a fault excuses it.

use std::collections::BTreeMap;

use super::ops::Fault;
use super::rules::{Rule, Terms};
use crate::history::Target;

/// How many of one rule are kept with their words; the others are counted, as are those that are excused.
const KEPT: u64 = 20;

/// One thing that is wrong, and that no fault excuses.
#[derive(Clone, Debug)]
pub(super) struct Violation {
    pub(super) rule: Rule,
    /// Who did what when.
    pub(super) what: String,
    /// The lines that show it: indices in [`History::lines`](crate::history::History::lines).
    pub(super) lines: Vec<usize>,
}

/// When and where something happened, for the question which faults can have caused it.
pub(super) struct Scene<'s> {
    /// The first call concerned.
    pub(super) from: u64,
    /// The last moment concerned.
    pub(super) to: u64,
    /// How long a holder may go on after a fault is over, in nanoseconds: its lease.
    pub(super) lease: u64,
    pub(super) key: &'s str,
    pub(super) clients: [u32; 2],
}

/// What was found so far.
pub(super) struct Findings<'f> {
    terms: &'f Terms<'f>,
    faults: &'f [Fault<'f>],
    pub(super) violations: Vec<Violation>,
    pub(super) counts: BTreeMap<Rule, u64>,
    /// By rule and fault.
    pub(super) excused: BTreeMap<(Rule, &'f str), u64>,
}

impl<'f> Findings<'f> {
    pub(super) fn new(terms: &'f Terms<'f>, faults: &'f [Fault<'f>]) -> Self {
        Self { terms, faults, violations: Vec::new(), counts: BTreeMap::new(), excused: BTreeMap::new() }
    }

    /// Adds what no fault can excuse.
    pub(super) fn add(&mut self, rule: Rule, lines: Vec<usize>, what: String) {
        let count = self.counts.entry(rule).or_default();
        *count += 1;
        if *count <= KEPT {
            self.violations.push(Violation { rule, what, lines });
        }
    }

    /// Adds what a fault may excuse.
    pub(super) fn add_at(&mut self, rule: Rule, scene: &Scene<'_>, lines: Vec<usize>, what: String) {
        match self.excuse(rule, scene) {
            Some(fault) => *self.excused.entry((rule, fault)).or_default() += 1,
            None => self.add(rule, lines, what),
        }
    }

    fn excuse(&self, rule: Rule, scene: &Scene<'_>) -> Option<&'f str> {
        let allowed = |fault: &Fault<'_>| {
            self.terms.allowances.iter().any(|one| one.fault == fault.name && one.rules.contains(&rule))
        };
        let excuses = |fault: &&Fault<'_>| {
            let hit = match fault.target {
                Target::Client(client) => scene.clients.contains(client),
                Target::Key(key) => key == scene.key,
                Target::Server(_) | Target::Link(_) => true,
            };
            let on = fault.began.at <= scene.to && fault.ended >= scene.from;
            let on = on && fault.ended.saturating_add(scene.lease) >= scene.to;
            hit && on && fault.proved && allowed(fault)
        };
        self.faults.iter().find(excuses).map(|fault| fault.name)
    }
}

/// A moment of a run, in seconds since its first line.
pub(super) fn seconds(start: u64, at: u64) -> String {
    let since = std::time::Duration::from_nanos(at.saturating_sub(start));
    format!("{:.6} s", since.as_secs_f64())
}
