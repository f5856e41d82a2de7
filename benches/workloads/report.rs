//! The table, `report.json`, and `RESULTS.md`.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use crate::contenders::Role;
use crate::harness::Row;
use crate::load::Result;
use crate::machine;

/// The results of one workload.
#[derive(Debug, Default)]
pub(crate) struct Report {
    pub(crate) rows: Vec<Row>,
    pub(crate) curves: Vec<Curve>,
    /// Notes for the reader, beside the rows.
    pub(crate) notes: BTreeSet<String>,
}

/// One line of a plot.
#[derive(Clone, Debug)]
pub(crate) struct Curve {
    pub(crate) plot: Plot,
    pub(crate) role: Role,
    pub(crate) name: String,
    pub(crate) points: Vec<(f64, f64)>,
}

/// The plots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Plot {
    /// Cycles per second, by the number of tasks, on one Redis, on five nodes, and on MySQL.
    Throughput,
    RedlockThroughput,
    MysqlThroughput,
    /// Share of hand-offs that took at most a given time.
    LocalHandoff,
    /// Cost of a cycle, by the number of held keys.
    Keys,
    /// Cost of an acquisition, by the number of waiters.
    Waiters,
}

impl Report {
    pub(crate) fn of(rows: impl IntoIterator<Item = Row>) -> Self {
        Self { rows: rows.into_iter().collect(), ..Self::default() }
    }

    pub(crate) fn absent(why: &str) -> Self {
        Self::of([Row::absent(why.to_owned())])
    }

    /// Adds points to the curve of a side.
    pub(crate) fn draw(&mut self, plot: Plot, side: (Role, &str), points: impl IntoIterator<Item = (f64, f64)>) {
        let (role, name) = (side.0, side.1.to_owned());
        match self.curves.iter_mut().find(|curve| curve.plot == plot && curve.name == name) {
            Some(curve) => curve.points.extend(points),
            None => self.curves.push(Curve { plot, role, name, points: points.into_iter().collect() }),
        }
    }

    /// Adds the results of another report.
    pub(crate) fn extend(&mut self, other: Self) {
        self.rows.extend(other.rows);
        self.curves.extend(other.curves);
        self.notes.extend(other.notes);
    }
}

/// Writes `report.json`, a list of the rows.
pub(crate) fn write_json(rows: &[Row], file: &Path) -> Result<()> {
    Ok(fs::write(file, serde_json::to_string_pretty(rows)? + "\n")?)
}

/// The heading of the part of `RESULTS.md` that people write.
const CAUSES: &str = "\n## What is missed, and why\n";

/// Writes `RESULTS.md`: the rows, and a description of the machine. The part that people wrote is kept.
pub(crate) fn write_results(report: &Report, file: &Path) -> Result<()> {
    let facts: Vec<String> =
        machine::description().iter().chain(&report.notes).map(|line| format!("- {line}")).collect();
    let before = fs::read_to_string(file).unwrap_or_default();
    let (_, causes) = before.split_once(CAUSES).unwrap_or_default();
    let text = format!(
        "# Results\n\n\
         Written by `cargo xtask bench --record` on {}. All sides of a workload took turns in the same run; figures are\n\
         medians over the rounds, the spread is the least and the greatest of ours, ratios are medians of each round's\n\
         ratio. Ratios count; absolute figures are those of this machine, where clients and servers share the cores.\n\
         Exclusion, and the order of the tokens, were checked on every run. The workloads and their floors and peers are\n\
         described in [README.md](README.md).\n\n\
         {}\n\n{}{CAUSES}{causes}",
        machine::date(),
        facts.join("\n"),
        table(&report.rows)
    );
    Ok(fs::write(file, text)?)
}

const HEADINGS: [&str; 7] = ["id", "what", "ours", "spread", "floor (ratio)", "best peer (ratio)", "aim: met?"];

/// The rows as a Markdown table whose columns are aligned, so that it can be read as plain text, too.
pub(crate) fn table(rows: &[Row]) -> String {
    let mut lines: Vec<Vec<String>> = vec![HEADINGS.iter().map(ToString::to_string).collect()];
    lines.extend(rows.iter().map(cells));
    let width = |column: usize| lines.iter().map(|line| line[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..HEADINGS.len()).map(width).collect();
    let line = |cells: &[String]| {
        let padded: Vec<String> = cells.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}")).collect();
        format!("| {} |\n", padded.join(" | "))
    };
    let rule: Vec<String> = widths.iter().map(|width| "-".repeat(*width)).collect();
    let (head, body) = lines.split_at(1);
    head.iter().chain([&rule]).chain(body).map(|cells| line(cells)).collect()
}

fn cells(row: &Row) -> Vec<String> {
    if let Some(why) = &row.absent {
        let mut cells = vec![row.id.to_owned(), format!("not measured: {why}")];
        cells.resize(HEADINGS.len(), String::new());
        return cells;
    }
    let number = |value: Option<f64>| value.map_or_else(|| "–".to_owned(), in_brief);
    let spread = row.spread.map_or_else(String::new, |[least, most]| format!("{}–{}", in_brief(least), in_brief(most)));
    let beside = |figure: Option<f64>, name: Option<&String>, ratio: Option<f64>| {
        let ratio = ratio.filter(|ratio| ratio.is_finite()).map(|ratio| format!("{}×", in_brief(ratio)));
        let inside: Vec<String> = name.cloned().into_iter().chain(ratio).collect();
        if figure.is_none() || inside.is_empty() {
            return number(figure);
        }
        format!("{} ({})", number(figure), inside.join(", "))
    };
    let aim = match row.met {
        _ if row.aim.is_empty() => "–".to_owned(),
        Some(true) => format!("{}: yes", row.aim),
        Some(false) => format!("{}: no", row.aim),
        None => row.aim.clone(),
    };
    vec![
        row.id.to_owned(),
        row.what.clone(),
        number(row.ours),
        spread,
        beside(row.floor, None, row.ratio_floor),
        beside(row.peer, row.peer_name.as_ref(), row.ratio_peer),
        aim,
    ]
}

/// The value with about three significant digits.
fn in_brief(value: f64) -> String {
    match value.abs() {
        0.0 => "0".to_owned(),
        odd if !odd.is_finite() => "–".to_owned(),
        big if big >= 10_000.0 => format!("{:.0}k", value / 1000.0),
        big if big >= 1000.0 => format!("{:.1}k", value / 1000.0),
        big if big >= 100.0 => format!("{value:.0}"),
        big if big >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}
