use leasehold::LockKey;
use ratatui::widgets::TableState;

use super::column::Column;
use super::row::Row;

/// The held keys: sorted, filtered, and one of them selected.
#[derive(Debug, Default)]
pub(super) struct Table {
    /// Sorted.
    rows: Vec<Row>,
    /// The places in `rows` of those that pass the filter.
    shown: Vec<usize>,
    sort: Sort,
    filter: String,
    /// The selected key, while its row is shown; the selection follows it when rows move.
    selected: Option<LockKey>,
    /// The place of the selection in `shown`, which stays where a selected key goes away.
    at: usize,
    /// The place in `shown` of the first row on the screen.
    pub(super) top: usize,
    /// How many rows the screen has.
    pub(super) page: usize,
}

/// What the rows are sorted by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sort {
    pub(super) by: Column,
    pub(super) descending: bool,
}

impl Sort {
    pub(super) fn sign(self) -> char {
        if self.descending { '▼' } else { '▲' }
    }
}

impl Table {
    /// Replaces all rows by those of a newer answer.
    pub(super) fn replace(&mut self, rows: Vec<Row>) {
        self.rows = rows;
        self.arrange();
    }

    /// All rows, whether they pass the filter or not.
    pub(super) fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// The row of a key, if it is held.
    pub(super) fn row(&self, key: &LockKey) -> Option<&Row> {
        self.rows.iter().find(|row| row.key == *key)
    }

    /// The number of rows that pass the filter.
    pub(super) fn count(&self) -> usize {
        self.shown.len()
    }

    pub(super) fn selected(&self) -> Option<&Row> {
        self.shown.get(self.at).and_then(|at| self.rows.get(*at))
    }

    /// Selects the row that stands so many below the selected one, or above it, and the last or the first if there is none.
    pub(super) fn select(&mut self, below: isize) {
        self.at = moved(self.at, below, self.shown.len());
        self.selected = self.selected().map(|row| row.key.clone());
    }

    pub(super) fn sort(&self) -> Sort {
        self.sort
    }

    /// Sorts by a column; by the one that the rows are sorted by already, in the other direction.
    pub(super) fn sort_by(&mut self, by: Column) {
        self.sort = Sort { by, descending: self.sort.by == by && !self.sort.descending };
        self.arrange();
    }

    /// Sorts by the next column, or by the one before.
    pub(super) fn sort_by_next(&mut self, back: bool) {
        let columns = Column::ALL;
        let at = columns.iter().position(|column| *column == self.sort.by).unwrap_or_default();
        let next = if back { at + columns.len() - 1 } else { at + 1 } % columns.len();
        self.sort_by(columns[next]);
    }

    pub(super) fn filter(&self) -> &str {
        &self.filter
    }

    /// Shows only rows whose key, mode, label or reason contain this text, in lower or upper case.
    pub(super) fn set_filter(&mut self, filter: String) {
        self.filter = filter;
        self.arrange();
    }

    /// The rows that pass the filter.
    pub(super) fn shown(&self) -> impl Iterator<Item = &Row> {
        self.shown.iter().filter_map(|at| self.rows.get(*at))
    }

    /// What is shown of them on a screen with this many lines: below the last row none is empty while rows are above the screen.
    pub(super) fn on_screen(&mut self, height: usize) -> TableState {
        self.page = height;
        let most = self.shown.len().saturating_sub(height);
        TableState::new().with_offset(self.top.min(most)).with_selected(self.at)
    }

    fn arrange(&mut self) {
        let Sort { by, descending } = self.sort;
        self.rows.sort_by(|one, other| one.compare(other, by, descending));
        let wanted = self.filter.to_lowercase();
        let rows = self.rows.iter().enumerate();
        self.shown = rows.filter(|(_, row)| row.contains(&wanted)).map(|(at, _)| at).collect();
        let selected = self.selected.as_ref();
        let place = selected.and_then(|key| self.shown.iter().position(|at| self.rows[*at].key == *key));
        self.at = place.unwrap_or(self.at.min(self.shown.len().saturating_sub(1)));
        self.selected = self.selected().map(|row| row.key.clone());
    }
}

/// The place that is so many below this one, or above it, among `count` places.
pub(super) fn moved(at: usize, below: isize, count: usize) -> usize {
    at.saturating_add_signed(below).min(count.saturating_sub(1))
}

#[cfg(test)]
mod tests {
    use leasehold::{Holder, Mode};

    use super::super::samples::{holder, row};
    use super::*;

    fn table(keys: &[&str]) -> Table {
        let mut table = Table::default();
        table.replace(rows(keys));
        table
    }

    fn rows(keys: &[&str]) -> Vec<Row> {
        keys.iter().map(|key| row(key, vec![holder(key, u64::from(key.as_bytes()[0]))])).collect()
    }

    fn shown(table: &Table) -> Vec<&str> {
        table.shown().map(|row| row.key.as_str()).collect()
    }

    fn selected(table: &Table) -> &str {
        table.selected().map_or("", |row| row.key.as_str())
    }

    #[test]
    fn the_selection_follows_its_key_and_stays_in_its_place_when_the_key_goes() {
        let mut table = table(&["b", "d", "f"]);
        table.select(1);
        assert_eq!(selected(&table), "d");
        table.replace(rows(&["a", "b", "c", "d", "f"]));
        assert_eq!(selected(&table), "d");
        table.sort_by(Column::Key);
        assert_eq!((selected(&table), table.sort().descending), ("d", true));
        assert_eq!(shown(&table), ["f", "d", "c", "b", "a"]);
        table.replace(rows(&["a", "b", "c", "f"]));
        assert_eq!(selected(&table), "c", "what stands where it stood");
        table.replace(Vec::new());
        assert!(table.selected().is_none() && shown(&table).is_empty());
        table.replace(rows(&["x"]));
        assert_eq!(selected(&table), "x");
    }

    #[test]
    fn every_column_sorts_both_ways_and_what_is_not_known_comes_last_in_both() {
        let mut table = table(&["b", "a", "c"]);
        table.rows.push(row("A", vec![Holder::new(Mode::Exclusive)]));
        for column in Column::ALL {
            table.sort_by(column);
            let up = shown(&table).concat();
            assert_eq!(table.sort(), Sort { by: column, descending: column == Column::Key });
            table.sort_by(column);
            let down = shown(&table).concat();
            let expected = match column {
                Column::Key => ["cbaA", "Aabc"],
                Column::Label | Column::Token | Column::Held => ["abcA", "cbaA"],
                Column::Left => ["abcA", "abcA"],
                // All are alike, and in the order of their keys.
                Column::Mode | Column::Holders | Column::Reason | Column::Waiting => ["Aabc", "Aabc"],
            };
            assert_eq!([up.as_str(), down.as_str()], expected, "{column:?}");
        }
        table.sort_by_next(false);
        assert_eq!(table.sort().by, Column::Key);
        table.sort_by_next(true);
        assert_eq!(table.sort().by, Column::Waiting);
    }
}
