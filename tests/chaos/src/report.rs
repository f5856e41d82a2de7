//! What a run found: a line of the table, and an entry of the report.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use leasehold_chaos::checker::Figures;
use serde::Serialize;

use crate::arguments::Plan;
use crate::setups::Setup;

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

/// Does this with every setup of the plan, one after the other, and writes what that found into a file. True: nothing failed.
pub(crate) fn of_each<E: Serialize>(
    plan: &Plan,
    (what, file): (&str, &str),
    one: impl Fn(&'static Setup, &Path) -> E,
    failures: fn(&E) -> &[String],
    table: fn(&[E]) -> String,
) -> Result<bool, String> {
    let failed = |error: std::io::Error| format!("{}: {error}", plan.output.display());
    fs::create_dir_all(&plan.output).map_err(failed)?;
    let output = plan.output.canonicalize().map_err(failed)?;
    let mut all = Vec::new();
    for setup in plan.setups() {
        println!("{}: {what}", setup.name);
        let found = one(setup, &output);
        for failure in failures(&found) {
            println!("  {failure}");
        }
        all.push(found);
    }
    println!("\n{}", table(&all));
    let report = serde_json::to_string_pretty(&all).map_err(|error| error.to_string())?;
    fs::write(output.join(file), report).map_err(failed)?;
    Ok(all.iter().all(|found| failures(found).is_empty()))
}

/// The results as a table.
pub(crate) fn table(entries: &[Entry]) -> String {
    let mut text = String::from(
        "backend            faults kinds  grants overlaps duplicate backward stale refused unresolved takeover p99  \
         after lease  overshoot p99  loss overdue  verdict\n",
    );
    for entry in entries {
        let Entry { backend, faults, kinds, stale_writes_refused: refused, figures, .. } = entry;
        let Figures { grants, overlaps, duplicate_tokens: duplicate, backward_tokens: backward, .. } = figures;
        let Figures { stale_writes_accepted: stale, unresolved, .. } = figures;
        let millis = |value: Option<u64>| value.map_or_else(|| "-".to_owned(), |value| format!("{value} ms"));
        let _ = writeln!(
            text,
            "{backend:18} {faults:6} {kinds:5} {grants:7} {overlaps:8} {duplicate:9} {backward:8} {stale:5} {refused:7} \
             {unresolved:10} {:>12} {:>12} {:>14} {:>13}  {}",
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
