//! The figures of two commits side by side: the table, its last line, and `against.json`.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use super::checkout::Commit;

/// Below this a difference is not called one, even if all turns agree.
const NOISE: f64 = 1.05;

/// One figure of one commit, from a `report.json`.
#[derive(Debug)]
pub(super) struct Figure {
    pub(super) id: String,
    pub(super) what: String,
    pub(super) value: f64,
    /// `None`: the report does not say.
    pub(super) less_is_better: Option<bool>,
}

/// One figure, on both commits.
#[derive(Clone, Debug)]
pub(super) struct Row {
    id: String,
    what: String,
    /// One value for each turn; none if that commit does not have this figure.
    before: Vec<f64>,
    now: Vec<f64>,
    less_is_better: bool,
    /// The largest ratio that meets the aim.
    aim: Option<f64>,
}

impl Row {
    /// A figure of which less is better, before and now.
    pub(super) fn measured(id: &str, what: &str, [before, now]: [f64; 2]) -> Self {
        let (id, what) = (id.to_owned(), what.to_owned());
        Self { id, what, before: vec![before], now: vec![now], less_is_better: true, aim: None }
    }

    pub(super) fn with_aim(self, ratio: f64) -> Self {
        Self { aim: Some(ratio), ..self }
    }

    /// Adds a figure to its row.
    pub(super) fn add(rows: &mut Vec<Self>, is_now: bool, figure: Figure) {
        let at = rows.iter().position(|row| row.id == figure.id && row.what == figure.what);
        let at = at.unwrap_or_else(|| {
            let less_is_better = figure.less_is_better.unwrap_or(false);
            let (before, now) = (Vec::new(), Vec::new());
            rows.push(Self { id: figure.id, what: figure.what, before, now, less_is_better, aim: None });
            rows.len() - 1
        });
        let row = &mut rows[at];
        row.less_is_better = figure.less_is_better.unwrap_or(row.less_is_better);
        if is_now { &mut row.now } else { &mut row.before }.push(figure.value);
    }

    /// The median of the ratios of each turn. `None`: one of the two does not have it, or was zero.
    fn ratio(&self) -> Option<f64> {
        let ratios: Vec<f64> = self.now.iter().zip(&self.before).map(|(now, before)| now / before).collect();
        median(&ratios).filter(|ratio| ratio.is_finite())
    }

    /// Whether it is worse than before by more than noise: every turn is worse than every turn before, and the difference is
    /// one that counts.
    fn is_worse(&self) -> bool {
        let (Some(before), Some(now)) = (median(&self.before), median(&self.now)) else { return false };
        let costs = |value: f64| if self.less_is_better { value } else { -value };
        let worst_before = self.before.iter().copied().map(costs).fold(f64::NEG_INFINITY, f64::max);
        let best_now = self.now.iter().copied().map(costs).fold(f64::INFINITY, f64::min);
        let counts = if self.less_is_better { now > before * NOISE } else { now * NOISE < before };
        best_now > worst_before && counts
    }

    fn verdict(&self) -> &'static str {
        match self.ratio() {
            _ if self.is_worse() => "worse",
            None if self.before.is_empty() || self.now.is_empty() => "–",
            _ => "no",
        }
    }

    fn cells(&self) -> [String; 6] {
        let number = |value: Option<f64>| value.map_or_else(|| "–".to_owned(), in_brief);
        let aim = self
            .aim
            .zip(self.ratio())
            .map(|(aim, ratio)| format!(" (aim: ≤ {aim:.2} ×, {})", if ratio <= aim { "met" } else { "not met" }));
        [
            self.id.clone(),
            self.what.clone() + &aim.unwrap_or_default(),
            number(median(&self.before)),
            number(median(&self.now)),
            number(self.ratio()),
            self.verdict().to_owned(),
        ]
    }

    fn json(&self) -> Value {
        json!({
            "id": self.id, "what": self.what, "before": self.before, "now": self.now, "ratio": self.ratio(),
            "less_is_better": self.less_is_better, "aim": self.aim, "worse": self.is_worse(),
        })
    }
}

/// Prints the table and what is worse, and writes the report.
pub(super) fn report(rows: &[Row], before: &Commit, now: &Commit, file: &Path) -> Result<(), String> {
    let json = json!({
        "before": before.hash, "now": now.hash, "rows": rows.iter().map(Row::json).collect::<Vec<_>>(),
    });
    let folder = file.parent().unwrap_or(file);
    let written = fs::create_dir_all(folder).and_then(|()| fs::write(file, format!("{json:#}\n")));
    written.map_err(|error| format!("{}: {error}", file.display()))?;
    print!("{}", table(rows));
    println!("before: {}, now: {}; written: {}", before.short(), now.short(), file.display());
    println!("{}", last_line(rows));
    Ok(())
}

fn last_line(rows: &[Row]) -> String {
    let worse: Vec<String> =
        rows.iter().filter(|row| row.is_worse()).map(|row| format!("{} {}", row.id, row.what)).collect();
    if worse.is_empty() { "nothing is worse".to_owned() } else { format!("worse beyond noise: {}", worse.join("; ")) }
}

fn table(rows: &[Row]) -> String {
    let mut lines = vec![["id", "what", "before", "now", "ratio", "worse?"].map(str::to_owned)];
    lines.extend(rows.iter().map(Row::cells));
    let widths: [usize; 6] =
        std::array::from_fn(|column| lines.iter().map(|line| line[column].chars().count()).max().unwrap_or(0));
    lines.insert(1, widths.map(|width| "-".repeat(width)));
    let line = |cells: &[String; 6]| {
        let padded: Vec<String> = cells.iter().zip(widths).map(|(cell, width)| format!("{cell:<width$}")).collect();
        format!("| {} |\n", padded.join(" | "))
    };
    lines.iter().map(line).collect()
}

fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => None,
        odd if odd % 2 == 1 => Some(sorted[middle]),
        _ => Some(f64::midpoint(sorted[middle - 1], sorted[middle])),
    }
}

fn in_brief(value: f64) -> String {
    match value.abs() {
        big if big >= 10_000.0 => format!("{:.0}k", value / 1000.0),
        big if big >= 100.0 => format!("{value:.0}"),
        big if big >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(less_is_better: bool, before: &[f64], now: &[f64]) -> Row {
        let mut rows = Vec::new();
        for (is_now, values) in [(false, before), (true, now)] {
            for value in values {
                // A commit whose reports did not say which is better yet.
                let less_is_better = is_now.then_some(less_is_better);
                let figure = Figure { id: "U1".into(), what: "p50".into(), value: *value, less_is_better };
                Row::add(&mut rows, is_now, figure);
            }
        }
        rows.remove(0)
    }

    #[test]
    fn worse_is_what_every_turn_says_and_what_counts() {
        assert!(row(true, &[10.0, 11.0], &[12.0, 13.0]).is_worse());
        assert!(!row(true, &[10.0, 12.5], &[12.0, 13.0]).is_worse(), "the turns overlap");
        assert!(!row(true, &[10.0, 10.1], &[10.2, 10.3]).is_worse(), "too little to count");
        assert!(!row(true, &[12.0, 13.0], &[10.0, 11.0]).is_worse(), "it is better");
        assert!(row(false, &[12.0, 13.0], &[10.0, 11.0]).is_worse());
        assert!(!row(false, &[10.0, 11.0], &[12.0, 13.0]).is_worse());
        assert!(row(true, &[0.0, 0.0], &[1.0, 2.0]).is_worse(), "also beside nothing");
    }

    #[test]
    fn a_figure_that_one_commit_does_not_have_is_not_worse() {
        let new = row(true, &[], &[1.0, 2.0]);
        assert_eq!((new.ratio(), new.verdict()), (None, "–"));
        assert_eq!(last_line(&[new]), "nothing is worse");
    }

    #[test]
    fn the_last_line_names_what_is_worse() {
        let rows = [row(true, &[1.0], &[2.0]), row(true, &[1.0], &[1.0])];
        assert_eq!(last_line(&rows), "worse beyond noise: U1 p50");
        assert!(table(&rows).contains("| 2.00  | worse"), "{}", table(&rows));
    }

    #[test]
    fn an_aim_is_met_or_not() {
        let built = Row::measured("B", "s", [100.0, 60.0]).with_aim(0.65);
        assert!(built.cells()[1].ends_with("(aim: ≤ 0.65 ×, met)"));
        assert!(built.with_aim(0.5).cells()[1].ends_with("not met)"));
    }
}
