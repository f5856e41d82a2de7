//! `cargo xtask bench`: measures the locks, beside bare round trips and other locks, and beside an earlier commit.

use std::fs;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::command::{passes, succeed};
use crate::workspace::read;
use crate::worktree::Worktree;

/// How often each commit has its turn. With four, figures of equals are apart by chance once in seventy times.
const TURNS: usize = 4;

/// Below this a difference is not called one, even if all turns agree.
const NOISE: f64 = 1.05;

/// Measures. It fails if a lock let two holders in, never because one was slow.
pub(crate) fn run(words: &[&str]) -> Result<bool, String> {
    let Some((before, ids)) = comparison(words)? else {
        let here = Worktree::here();
        build(&here)?;
        return passes(&mut workloads(&here, words));
    };
    let rows = by_turns(before, &ids)?;
    for row in &rows {
        println!("{}", row.line());
    }
    let worse: Vec<&str> = rows.iter().filter(|row| row.is_worse()).map(|row| row.what.as_str()).collect();
    match &worse[..] {
        [] => println!("nothing is worse"),
        worse => println!("worse: {}", worse.join("; ")),
    }
    Ok(true)
}

/// The commit that this one is compared with, if that is asked for, and which workloads.
fn comparison<'a>(words: &[&'a str]) -> Result<Option<(&'a str, Vec<&'a str>)>, String> {
    let mut ids = words.to_vec();
    let Some(at) = ids.iter().position(|word| *word == "--against") else { return Ok(None) };
    let before = *ids.get(at + 1).ok_or("--against needs a commit")?;
    ids.drain(at..at + 2);
    match ids.iter().find(|word| word.starts_with('-')) {
        Some(flag) => Err(format!("{flag} is nothing for a comparison, whose turns are always short")),
        None => Ok(Some((before, ids))),
    }
}

/// Runs the workloads on both commits, by turns. What breaks on one of them has no figures there.
fn by_turns(before: &str, ids: &[&str]) -> Result<Vec<Row>, String> {
    let sides = [Worktree::of(before, "against")?, Worktree::here()];
    sides.iter().try_for_each(build)?;
    let mut rows = Vec::new();
    for turn in 0..TURNS {
        // Whoever begins finds the machine as the last turn left it.
        for side in if turn % 2 == 0 { [0, 1] } else { [1, 0] } {
            println!("turn {} of {TURNS}: {} …", turn + 1, [before, "this commit"][side]);
            add(&mut rows, side, measured(&sides[side], ids)?);
        }
    }
    Ok(rows)
}

const BENCH: [&str; 5] = ["bench", "--package", "leasehold-benches", "--bench", "workloads"];

/// Builds the program that measures, and the one whose start is timed beside flock(1).
fn build(side: &Worktree) -> Result<(), String> {
    let program = ["build", "--profile", "bench", "--package", "leasehold-cli", "--bin", "leasehold"];
    succeed(side.cargo().args(program))?;
    succeed(side.cargo().args(BENCH).arg("--no-run"))
}

/// The command that runs the program that measures.
fn workloads(side: &Worktree, words: &[&str]) -> Command {
    let mut bench = side.cargo();
    bench.args(BENCH).arg("--").args(words).env("LEASEHOLD_BENCH_PROGRAM", side.target.join("release/leasehold"));
    bench
}

/// A figure: what it is, how much, and whether less of it is better.
type Figure = (String, f64, bool);

/// One short run, and the figures of the report that it wrote.
fn measured(side: &Worktree, ids: &[&str]) -> Result<Vec<Figure>, String> {
    let report = side.target.join("bench/report.json");
    // Else a run that breaks would leave the figures of an earlier one.
    let _ = fs::remove_file(&report);
    if !passes(workloads(side, &[&["--quick"], ids].concat()).stdout(Stdio::null()))? {
        println!("a workload broke, as it says above");
    }
    let figures: Vec<Value> =
        serde_json::from_str(&read(&report)?).map_err(|failure| format!("the report: {failure}"))?;
    // What was not measured has no value.
    let figure = |figure: &Value| {
        let what = format!("{} {}", figure["id"].as_str()?, figure["what"].as_str()?);
        Some((what, figure["ours"].as_f64()?, figure["less_is_better"] == true))
    };
    Ok(figures.iter().filter_map(figure).collect())
}

/// One figure, before and now: a value for each turn; none where a commit does not have it.
#[derive(Debug)]
struct Row {
    what: String,
    sides: [Vec<f64>; 2],
    less_is_better: bool,
}

/// Adds the figures of a turn.
fn add(rows: &mut Vec<Row>, side: usize, figures: Vec<Figure>) {
    for (what, value, less_is_better) in figures {
        let at = rows.iter().position(|row| row.what == what).unwrap_or_else(|| {
            rows.push(Row { what, sides: [Vec::new(), Vec::new()], less_is_better: false });
            rows.len() - 1
        });
        rows[at].sides[side].push(value);
        // Reports of early commits do not say it.
        rows[at].less_is_better |= less_is_better;
    }
}

impl Row {
    /// Whether every turn is worse than every turn before, and the difference is one that counts.
    fn is_worse(&self) -> bool {
        let [Some(before), Some(now)] = self.sides.each_ref().map(|side| median(side)) else { return false };
        let costs = |value: &f64| if self.less_is_better { *value } else { -value };
        let worst_before = self.sides[0].iter().map(costs).fold(f64::NEG_INFINITY, f64::max);
        let best_now = self.sides[1].iter().map(costs).fold(f64::INFINITY, f64::min);
        let counts = if self.less_is_better { now > before * NOISE } else { now * NOISE < before };
        best_now > worst_before && counts
    }

    fn line(&self) -> String {
        let [before, now] =
            self.sides.each_ref().map(|side| median(side).map_or("–".to_owned(), |is| format!("{is:.2}")));
        let ratios: Vec<f64> = self.sides[1].iter().zip(&self.sides[0]).map(|(now, before)| now / before).collect();
        let ratio = median(&ratios).map_or(String::new(), |ratio| format!("{ratio:.2}"));
        format!("{:70} {before:>12} {now:>12} {ratio:>6} {}", self.what, if self.is_worse() { "worse" } else { "" })
    }
}

fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let (lower, upper) = (sorted.get(sorted.len().checked_sub(1)? / 2)?, sorted.get(sorted.len() / 2)?);
    Some(f64::midpoint(*lower, *upper))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_comparison_is_asked_for_by_a_commit() {
        assert_eq!(comparison(&["--quick", "U64"]), Ok(None));
        assert_eq!(comparison(&["U64", "--against", "HEAD~1", "H8"]), Ok(Some(("HEAD~1", vec!["U64", "H8"]))));
        for words in [&["--against"][..], &["--record", "--against", "HEAD"]] {
            assert!(comparison(words).is_err(), "{words:?}");
        }
    }

    #[test]
    fn worse_is_what_every_turn_says_and_what_counts() {
        for (less_is_better, before, now, is_worse) in [
            (true, &[10.0, 11.0][..], [12.0, 13.0], true),
            // The turns overlap; it is too little to count; it is better.
            (true, &[10.0, 12.5], [12.0, 13.0], false),
            (true, &[10.0, 10.1], [10.2, 10.3], false),
            (true, &[12.0, 13.0], [10.0, 11.0], false),
            (false, &[12.0, 13.0], [10.0, 11.0], true),
            (false, &[10.0, 11.0], [12.0, 13.0], false),
            // Also beside zero, and not where the commit before did not have it.
            (true, &[0.0, 0.0], [1.0, 2.0], true),
            (true, &[], [1.0, 2.0], false),
        ] {
            let sides = [before.to_vec(), now.to_vec()];
            let row = Row { what: "U1 p50".to_owned(), sides, less_is_better };
            assert_eq!(row.is_worse(), is_worse, "{}", row.line());
        }
    }
}
