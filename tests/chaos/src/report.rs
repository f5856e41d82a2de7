//! What a run found: a line of the table, and an entry of the report.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use leasehold_chaos::checker::Figures;
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
    pub(crate) stale_writes_refused: u64,
    #[serde(flatten)]
    pub(crate) figures: Figures,
    /// What is not as it must be. Empty: the run passed.
    pub(crate) failures: Vec<String>,
    /// How often each kind of fault had an effect.
    pub(crate) effects: BTreeMap<String, u64>,
}

/// The results as a table.
pub(crate) fn table(entries: &[Entry]) -> String {
    let mut text = String::from(
        "backend            faults kinds  grants overlaps duplicate backward stale refused unresolved takeover p99  \
         after lease  overshoot p99  loss overdue  verdict\n",
    );
    for entry in entries {
        let figures = &entry.figures;
        let millis = |value: Option<u64>| value.map_or_else(|| "-".to_owned(), |value| format!("{value} ms"));
        let _ = writeln!(
            text,
            "{:18} {:6} {:5} {:7} {:8} {:9} {:8} {:5} {:7} {:10} {:>12} {:>12} {:>14} {:>13}  {}",
            entry.backend,
            entry.faults,
            entry.kinds,
            figures.grants,
            figures.overlaps,
            figures.duplicate_tokens,
            figures.backward_tokens,
            figures.stale_writes_accepted,
            entry.stale_writes_refused,
            figures.unresolved,
            millis(figures.takeover_p99_ms),
            millis(figures.takeover_after_lease_p99_ms),
            millis(figures.wait_overshoot_p99_ms),
            millis(figures.loss_overdue_p99_ms),
            if entry.failures.is_empty() { "passed" } else { "failed" },
        );
    }
    let grants: u64 = entries.iter().map(|entry| entry.figures.grants).sum();
    let _ = writeln!(text, "{grants} grants checked");
    text
}
