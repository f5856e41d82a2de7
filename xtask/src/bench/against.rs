//! `--against`: the same workloads on this commit and on an earlier one, by turns.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::workspace::{cargo, root, target};

use super::checkout::{Checkout, Commit};
use super::comparison::{Figure, Row};
use super::first_build::BUILD;

/// How often each commit has its turn. With four, figures of equals are apart by chance once in seventy times.
const TURNS: usize = 4;
const WORKLOADS: &str = "benches/workloads/main.rs";

/// Those of these workloads, or of all, that the earlier commit has as well. Says which it does not have.
pub(super) fn known_to_both(wanted: &[&str], before: &Commit) -> Result<Vec<String>, String> {
    let main = fs::read_to_string(root().join(WORKLOADS)).map_err(|e| format!("{WORKLOADS}: {e}"))?;
    let now = ids(&main);
    if let Some(unknown) = wanted.iter().find(|id| !now.contains(*id)) {
        return Err(format!("there is no workload {unknown}; the workloads are {}, {}", now.join(", "), BUILD));
    }
    let main = before.file(WORKLOADS).map_err(|_| format!("{} has no workloads", before.short()))?;
    let then = ids(&main);
    let (both, new): (Vec<&str>, Vec<&str>) =
        now.into_iter().filter(|id| wanted.is_empty() || wanted.contains(id)).partition(|id| then.contains(id));
    for id in new {
        println!("{id}: {} does not have this workload yet", before.short());
    }
    Ok(both.into_iter().map(str::to_owned).collect())
}

/// The ids in the table of workloads.
fn ids(main: &str) -> Vec<&str> {
    main.lines().filter_map(|line| line.split_once("Workload { id: \"")?.1.split('"').next()).collect()
}

/// Runs the workloads on both commits, by turns. What breaks on one of them has no figures there.
pub(super) fn compare(before: &Commit, workloads: &[String]) -> Result<Vec<Row>, String> {
    let checkout = Checkout::of(before, "against")?;
    let sides = [
        Side { name: before.short().to_owned(), tree: checkout.tree(), target: checkout.target() },
        Side { name: "this commit".to_owned(), tree: root(), target: target() },
    ];
    for side in &sides {
        println!("building {} …", side.name);
        side.build()?;
    }
    let mut rows = Vec::new();
    for turn in 0..TURNS {
        // Whoever begins finds the machine as the last turn left it.
        let order = if turn % 2 == 0 { [0, 1] } else { [1, 0] };
        for at in order {
            println!("turn {} of {TURNS}: {} …", turn + 1, sides[at].name);
            for figure in sides[at].measure(workloads)? {
                Row::add(&mut rows, at == 1, figure);
            }
        }
    }
    Ok(rows)
}

/// One of the two commits.
#[derive(Debug)]
struct Side {
    name: String,
    tree: PathBuf,
    target: PathBuf,
}

impl Side {
    fn cargo(&self) -> Command {
        let mut cargo = cargo();
        cargo.current_dir(&self.tree).env("CARGO_TARGET_DIR", &self.target);
        cargo
    }

    fn build(&self) -> Result<(), String> {
        let program = ["build", "--quiet", "--profile", "bench", "--package", "leasehold-cli", "--bin", "leasehold"];
        let workloads = ["bench", "--quiet", "--package", "leasehold-benches", "--bench", "workloads", "--no-run"];
        for arguments in [&program[..], &workloads] {
            let built = self.cargo().args(arguments).status().map_err(|error| error.to_string())?;
            if !built.success() {
                return Err(format!("{} does not build: cargo {}", self.name, arguments.join(" ")));
            }
        }
        Ok(())
    }

    /// One short run, and the rows that it wrote.
    fn measure(&self, workloads: &[String]) -> Result<Vec<Figure>, String> {
        let report = self.target.join("bench/report.json");
        // Else a run that breaks would leave the figures of an earlier one.
        let _ = fs::remove_file(&report);
        let status = self
            .cargo()
            .args(["bench", "--quiet", "--package", "leasehold-benches", "--bench", "workloads", "--", "--quick"])
            .args(workloads)
            .env("LEASEHOLD_BENCH_PROGRAM", self.target.join("release/leasehold"))
            .stdout(Stdio::null())
            .status()
            .map_err(|error| error.to_string())?;
        if !status.success() {
            println!("{}: a workload broke, as it says above", self.name);
        }
        let text = fs::read_to_string(&report).map_err(|e| format!("{}: {}: {e}", self.name, report.display()))?;
        read(&text).ok_or_else(|| format!("{}: {} is no report", self.name, report.display()))
    }
}

/// The rows of a `report.json` that have a figure.
fn read(report: &str) -> Option<Vec<Figure>> {
    let rows: Value = serde_json::from_str(report).ok()?;
    let text = |row: &Value, member: &str| row.get(member)?.as_str().map(str::to_owned);
    let figure = |row: &Value| {
        let less_is_better = row.get("less_is_better").and_then(Value::as_bool);
        Some(Figure {
            id: text(row, "id")?,
            what: text(row, "what")?,
            value: row.get("ours")?.as_f64()?,
            less_is_better,
        })
    };
    Some(rows.as_array()?.iter().filter_map(figure).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ids_are_those_of_the_table_of_workloads() {
        let main = fs::read_to_string(root().join(WORKLOADS)).unwrap();
        let found = ids(&main);
        assert!(found.contains(&"U1") && found.contains(&"M64"), "{found:?}");
        assert!(!found.contains(&BUILD), "the build is no workload of that program");
    }

    #[test]
    fn rows_without_a_figure_are_left_out() {
        let report = r#"[{"id":"U1","what":"p50","ours":1.5,"less_is_better":true},{"id":"M1","what":"","ours":null}]"#;
        let rows = read(report).unwrap();
        assert_eq!(rows.len(), 1);
        assert_eq!((rows[0].id.as_str(), rows[0].less_is_better), ("U1", Some(true)));
        assert!(read("not JSON").is_none());
    }
}
