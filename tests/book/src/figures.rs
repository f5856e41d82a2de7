use std::fmt::Write;

use mdbook_driver::errors::{Error, Result};
use serde::Deserialize;

const MARKS: [&str; 2] = ["<!-- figures:begin -->", "<!-- figures:end -->"];

/// What the table has of the report of a run: an entry for each setup.
#[derive(Debug, Deserialize)]
struct Entry {
    backend: String,
    seed: u64,
    kinds: usize,
    grants: u64,
    overlaps: u64,
    duplicate_tokens: u64,
    backward_tokens: u64,
    stale_writes_accepted: u64,
    takeover_after_lease_p99_ms: Option<u64>,
    wait_overshoot_p99_ms: Option<u64>,
    loss_overdue_p99_ms: Option<u64>,
    failures: Vec<String>,
}

/// A chapter with the figures of this report between its marks.
///
/// # Errors
/// When the chapter has no marks, or the text is no report.
pub fn with_figures(chapter: &str, report: &str) -> Result<String> {
    let entries: Vec<Entry> = serde_json::from_str(report)?;
    let parts = chapter.split_once(MARKS[0]).and_then(|(head, rest)| Some((head, rest.split_once(MARKS[1])?.1)));
    let (head, tail) = parts.ok_or_else(|| Error::msg(format!("the chapter lacks the lines {MARKS:?}")))?;
    Ok(format!("{head}{}\n{}{}{tail}", MARKS[0], table(&entries), MARKS[1]))
}

fn table(entries: &[Entry]) -> String {
    let sum = |of: fn(&Entry) -> u64| number(entries.iter().map(of).sum());
    let mut seeds: Vec<_> = entries.iter().map(|entry| entry.seed.to_string()).collect();
    seeds.dedup();
    let failed = entries.iter().filter(|entry| !entry.failures.is_empty()).count();
    let mut text = format!(
        "{} setups with seed {}, {} grants: {} overlaps without an excuse, {} tokens given twice, {} tokens smaller than one before, \
         {} stale writes accepted; {failed} setups failed.\n\n\
         | setup | kinds of fault | grants | key of a killed client, ms after its lease (p99) | over the wait limit, ms (p99) | \
         loss noticed, ms after the deadline (p99) |\n|---|---|---|---|---|---|\n",
        entries.len(),
        seeds.join(", "),
        sum(|entry| entry.grants),
        sum(|entry| entry.overlaps),
        sum(|entry| entry.duplicate_tokens),
        sum(|entry| entry.backward_tokens),
        sum(|entry| entry.stale_writes_accepted),
    );
    for entry in entries {
        let times = [entry.takeover_after_lease_p99_ms, entry.wait_overshoot_p99_ms, entry.loss_overdue_p99_ms];
        let [takeover, overshoot, loss] = times.map(|millis| millis.map_or_else(|| "–".to_owned(), number));
        let (setup, kinds, grants) = (&entry.backend, entry.kinds, number(entry.grants));
        // Writing to a string does not fail.
        let _ = writeln!(text, "| `{setup}` | {kinds} | {grants} | {takeover} | {overshoot} | {loss} |");
    }
    text
}

/// A number with a comma before each three digits.
fn number(number: u64) -> String {
    let digits = number.to_string();
    let groups: Vec<_> = digits.as_bytes().rchunks(3).rev().map(String::from_utf8_lossy).collect();
    groups.join(",")
}
