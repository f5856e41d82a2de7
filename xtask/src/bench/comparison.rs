//! The figures of two commits side by side: the table, and its last line.

use serde_json::Value;

/// Below this a difference is not called one, even if all turns agree.
const NOISE: f64 = 1.05;

/// One figure, on both commits.
#[derive(Clone, Debug)]
pub(super) struct Row {
    pub(super) id: String,
    pub(super) what: String,
    /// One value for each turn; none if that commit does not have this figure.
    pub(super) before: Vec<f64>,
    pub(super) now: Vec<f64>,
    pub(super) less_is_better: bool,
}

/// Adds the figures of a turn, from the `report.json` that it wrote.
pub(super) fn add(rows: &mut Vec<Row>, is_now: bool, report: &str) -> Result<(), String> {
    let figures: Vec<Value> = serde_json::from_str(report).map_err(|failure| format!("the report: {failure}"))?;
    for figure in figures {
        // What was not measured has none.
        let (Some(id), Some(what), Some(value)) =
            (figure["id"].as_str(), figure["what"].as_str(), figure["ours"].as_f64())
        else {
            continue;
        };
        let at = rows.iter().position(|row| row.id == id && row.what == what).unwrap_or_else(|| {
            let (id, what) = (id.to_owned(), what.to_owned());
            rows.push(Row { id, what, before: Vec::new(), now: Vec::new(), less_is_better: false });
            rows.len() - 1
        });
        let row = &mut rows[at];
        // Reports of early commits do not say it.
        row.less_is_better = figure["less_is_better"].as_bool().unwrap_or(row.less_is_better);
        if is_now { &mut row.now } else { &mut row.before }.push(value);
    }
    Ok(())
}

impl Row {
    /// The median of the ratios of each turn. `None`: one of the two does not have it, or was zero.
    fn ratio(&self) -> Option<f64> {
        let ratios: Vec<f64> = self.now.iter().zip(&self.before).map(|(now, before)| now / before).collect();
        median(&ratios).filter(|ratio| ratio.is_finite())
    }

    /// Whether it is worse than before by more than noise: every turn is worse than every turn before, and the difference is
    /// one that counts.
    fn is_worse(&self) -> bool {
        let (Some(before), Some(now)) = (median(&self.before), median(&self.now)) else { return false };
        let costs = |value: &f64| if self.less_is_better { *value } else { -value };
        let worst_before = self.before.iter().map(costs).fold(f64::NEG_INFINITY, f64::max);
        let best_now = self.now.iter().map(costs).fold(f64::INFINITY, f64::min);
        let counts = if self.less_is_better { now > before * NOISE } else { now * NOISE < before };
        best_now > worst_before && counts
    }

    fn cells(&self) -> [String; 6] {
        let number = |value: Option<f64>| value.map_or_else(|| "–".to_owned(), in_brief);
        let figures = [median(&self.before), median(&self.now), self.ratio()].map(number);
        let verdict = match &figures {
            _ if self.is_worse() => "worse",
            [before, now, _] if before == "–" || now == "–" => "–",
            _ => "no",
        };
        let [before, now, ratio] = figures;
        [self.id.clone(), self.what.clone(), before, now, ratio, verdict.to_owned()]
    }
}

pub(super) fn last_line(rows: &[Row]) -> String {
    let worse: Vec<String> =
        rows.iter().filter(|row| row.is_worse()).map(|row| format!("{} {}", row.id, row.what)).collect();
    if worse.is_empty() { "nothing is worse".to_owned() } else { format!("worse beyond noise: {}", worse.join("; ")) }
}

pub(super) fn table(rows: &[Row]) -> String {
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
    let upper = *sorted.get(middle)?;
    Some(if sorted.len() % 2 == 1 { upper } else { f64::midpoint(sorted[middle - 1], upper) })
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
                // A commit whose reports did not say which is better yet, and a row without a figure.
                let less_is_better = is_now.then_some(less_is_better);
                let figure = serde_json::json!({
                    "id": "U1", "what": "p50", "ours": value, "less_is_better": less_is_better,
                });
                let report = serde_json::json!([{"id": "M1", "what": "", "ours": null}, figure]);
                add(&mut rows, is_now, &report.to_string()).unwrap();
            }
        }
        rows.remove(0)
    }

    #[test]
    fn worse_is_what_every_turn_says_and_what_counts() {
        for (less_is_better, before, now, is_worse) in [
            (true, [10.0, 11.0], [12.0, 13.0], true),
            // The turns overlap; it is too little to count; it is better.
            (true, [10.0, 12.5], [12.0, 13.0], false),
            (true, [10.0, 10.1], [10.2, 10.3], false),
            (true, [12.0, 13.0], [10.0, 11.0], false),
            (false, [12.0, 13.0], [10.0, 11.0], true),
            (false, [10.0, 11.0], [12.0, 13.0], false),
            // Also beside nothing.
            (true, [0.0, 0.0], [1.0, 2.0], true),
        ] {
            assert_eq!(row(less_is_better, &before, &now).is_worse(), is_worse, "{before:?} {now:?}");
        }
    }

    #[test]
    fn a_figure_that_one_commit_does_not_have_is_not_worse() {
        let new = row(true, &[], &[1.0, 2.0]);
        assert!(table(std::slice::from_ref(&new)).contains("| –      | 1.50 | –     | –      |"));
        assert_eq!(last_line(&[new]), "nothing is worse");
    }

    #[test]
    fn the_last_line_names_what_is_worse() {
        let rows = [row(true, &[1.0], &[2.0]), row(true, &[1.0], &[1.0])];
        assert_eq!(last_line(&rows), "worse beyond noise: U1 p50");
        assert!(table(&rows).contains("| 2.00  | worse"), "{}", table(&rows));
    }
}
