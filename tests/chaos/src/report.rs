//! What a run found: a line of the table, and an entry of the report.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde::Serialize;

/// The result for one setup.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Entry {
    pub(crate) backend: String,
    pub(crate) seed: u64,
    /// How many faults there were.
    pub(crate) faults: u64,
    /// How many kinds of them had an effect.
    pub(crate) kinds: usize,
    pub(crate) grants: u64,
    pub(crate) overlaps: u64,
    pub(crate) duplicate_tokens: u64,
    pub(crate) backward_tokens: u64,
    pub(crate) stale_writes_accepted: u64,
    pub(crate) stale_writes_refused: u64,
    pub(crate) lost_updates: u64,
    pub(crate) unfenced_losses: u64,
    pub(crate) takeover_p99_ms: Option<u64>,
    pub(crate) takeover_after_lease_p99_ms: Option<u64>,
    pub(crate) wait_overshoot_p99_ms: Option<u64>,
    pub(crate) loss_overdue_p99_ms: Option<u64>,
    pub(crate) unresolved: u64,
    /// What is not as it must be. Empty: the run passed.
    pub(crate) failures: Vec<String>,
    /// What a README exempts, and how often that came.
    pub(crate) excused: BTreeMap<String, u64>,
    /// How often each kind of fault had an effect.
    pub(crate) effects: BTreeMap<String, u64>,
}

impl Entry {
    /// Of a run that came to no end.
    pub(crate) fn without_a_verdict(backend: &str, seed: u64, why: String) -> Self {
        Self { backend: backend.to_owned(), seed, failures: vec![why], ..Self::default() }
    }
}

/// The results as a table.
pub(crate) fn table(entries: &[Entry]) -> String {
    let mut text = String::from(
        "backend            faults kinds  grants overlaps duplicate backward stale refused unresolved takeover p99  \
         after lease  overshoot p99  loss overdue  verdict\n",
    );
    for entry in entries {
        let millis = |value: Option<u64>| value.map_or_else(|| "-".to_owned(), |value| format!("{value} ms"));
        let _ = writeln!(
            text,
            "{:18} {:6} {:5} {:7} {:8} {:9} {:8} {:5} {:7} {:10} {:>12} {:>12} {:>14} {:>13}  {}",
            entry.backend,
            entry.faults,
            entry.kinds,
            entry.grants,
            entry.overlaps,
            entry.duplicate_tokens,
            entry.backward_tokens,
            entry.stale_writes_accepted,
            entry.stale_writes_refused,
            entry.unresolved,
            millis(entry.takeover_p99_ms),
            millis(entry.takeover_after_lease_p99_ms),
            millis(entry.wait_overshoot_p99_ms),
            millis(entry.loss_overdue_p99_ms),
            if entry.failures.is_empty() { "passed" } else { "failed" },
        );
    }
    let grants: u64 = entries.iter().map(|entry| entry.grants).sum();
    let _ = writeln!(text, "{grants} grants checked");
    text
}
