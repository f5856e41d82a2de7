//! `--against`: the same workloads on this commit and on an earlier one, by turns.

use std::fs;
use std::process::{Command, Stdio};

use super::checkout::Checkout;
use super::comparison::{Row, add};
use super::first_build::BUILD;
use crate::command::{passes, printed, succeed};
use crate::workspace::{git, read, root};

/// How often each commit has its turn. With four, figures of equals are apart by chance once in seventy times.
const TURNS: usize = 4;
const TABLE: &str = "benches/workloads/table.rs";
/// Where earlier commits have it.
const EARLIER_TABLE: &str = "benches/workloads/main.rs";

/// Those of these workloads, or of all, that the earlier commit has as well. Says which it does not have.
pub(super) fn known_to_both(wanted: &[&str], before: &str) -> Result<Vec<String>, String> {
    let now = ids(&read(&root().join(TABLE))?);
    if let Some(unknown) = wanted.iter().find(|id| !now.iter().any(|known| known == *id)) {
        return Err(format!("there is no workload {unknown}; the workloads are {}, {BUILD}", now.join(", ")));
    }
    let shown = |file| printed(git(&root()).args(["show", &format!("{before}:{file}")]));
    let then = shown(TABLE).or_else(|_| shown(EARLIER_TABLE)).map_err(|_| format!("{before} has no workloads"))?;
    let then = ids(&then);
    let chosen = now.into_iter().filter(|id| wanted.is_empty() || wanted.contains(&id.as_str()));
    let (both, new): (Vec<_>, Vec<_>) = chosen.partition(|id| then.contains(id));
    for id in new {
        println!("{id}: {before} does not have this workload yet");
    }
    Ok(both)
}

/// The ids in the table of workloads.
fn ids(table: &str) -> Vec<String> {
    let id = |entry: &str| Some(entry.trim_start().strip_prefix("id: \"")?.split_once('"')?.0.to_owned());
    table.split("Workload {").skip(1).filter_map(id).collect()
}

/// Runs the workloads on both commits, by turns. What breaks on one of them has no figures there.
pub(super) fn compare(before: &str, workloads: &[String]) -> Result<Vec<Row>, String> {
    let sides = [(before, Checkout::of(before, "against")?), ("this commit", Checkout::here())];
    for (name, side) in &sides {
        println!("building {name} …");
        build(side).map_err(|why| format!("{name} does not build: {why}"))?;
    }
    let mut rows = Vec::new();
    for turn in 0..TURNS {
        // Whoever begins finds the machine as the last turn left it.
        let order = if turn % 2 == 0 { [0, 1] } else { [1, 0] };
        for at in order {
            let (name, side) = &sides[at];
            println!("turn {} of {TURNS}: {name} …", turn + 1);
            let report = measured(name, side, workloads).map_err(|why| format!("{name}: {why}"))?;
            add(&mut rows, at == 1, &report)?;
        }
    }
    Ok(rows)
}

/// Builds the program that measures, and the one whose start is timed beside flock(1).
pub(super) fn build(side: &Checkout) -> Result<(), String> {
    let program = ["build", "--profile", "bench", "--package", "leasehold-cli", "--bin", "leasehold"];
    succeed(side.cargo().args(program))?;
    succeed(side.cargo().args(BENCH).arg("--no-run"))
}

const BENCH: [&str; 5] = ["bench", "--package", "leasehold-benches", "--bench", "workloads"];

/// The command that runs the program that measures.
pub(super) fn workloads(side: &Checkout, words: &[&str]) -> Command {
    let mut bench = side.cargo();
    bench.args(BENCH).arg("--").args(words).env("LEASEHOLD_BENCH_PROGRAM", side.target.join("release/leasehold"));
    bench
}

/// One short run, and the report that it wrote.
fn measured(name: &str, side: &Checkout, ids: &[String]) -> Result<String, String> {
    let report = side.target.join("bench/report.json");
    // Else a run that breaks would leave the figures of an earlier one.
    let _ = fs::remove_file(&report);
    let words: Vec<&str> = ["--quick"].into_iter().chain(ids.iter().map(String::as_str)).collect();
    if !passes(workloads(side, &words).stdout(Stdio::null()))? {
        println!("{name}: a workload broke, as it says above");
    }
    read(&report)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ids_are_those_of_the_table_of_workloads() {
        let found = known_to_both(&["U1", "M64"], "HEAD").unwrap();
        assert_eq!(found, ["U1", "M64"]);
        known_to_both(&[BUILD], "HEAD").expect_err("the build is no workload of that program");
    }
}
