use leasehold::LockKey;
use unicode_width::UnicodeWidthStr;

use super::column::Column;
use super::row::{Now, Row};

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
    top: usize,
    /// The number of rows on the screen.
    height: usize,
}

/// What the rows are sorted by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sort {
    pub(super) by: Column,
    pub(super) descending: bool,
}

impl Sort {
    pub(super) fn sign(self) -> char {
        if self.descending { '▼' } else { '▲' }
    }
}

impl Default for Sort {
    fn default() -> Self {
        Self { by: Column::Key, descending: false }
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

    /// How many rows the screen has.
    pub(super) fn page(&self) -> usize {
        self.height
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

    /// The rows on a screen with this many lines for them, and which of these is selected.
    pub(super) fn on_screen(&mut self, height: usize) -> (impl Iterator<Item = &Row>, Option<usize>) {
        self.height = height;
        // The selection stays on the screen, and no line below the last row is left empty while rows are above the screen.
        let most = self.shown.len().saturating_sub(height).min(self.at);
        self.top = self.top.clamp((self.at + 1).saturating_sub(height).min(most), most);
        let selected = (self.at < self.shown.len()).then(|| self.at - self.top);
        (self.shown.iter().skip(self.top).take(height).filter_map(|at| self.rows.get(*at)), selected)
    }

    /// The width that all cells of a column need, and 0 if nothing is known for it in any row.
    pub(super) fn width_of(&self, column: Column, now: Now) -> usize {
        self.rows
            .iter()
            .filter_map(|row| row.cell(row.first(), column, now))
            .map(|cell| cell.width())
            .max()
            .unwrap_or(0)
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

    use super::super::samples::{holder, now, row};
    use super::*;

    fn table(keys: &[&str]) -> Table {
        let mut table = Table::default();
        table.replace(rows(keys));
        table
    }

    fn rows(keys: &[&str]) -> Vec<Row> {
        keys.iter().map(|key| row(key, vec![holder(key, u64::from(key.as_bytes()[0]))])).collect()
    }

    fn shown(table: &mut Table, height: usize) -> (Vec<String>, Option<usize>) {
        let (rows, selected) = table.on_screen(height);
        (rows.map(|row| row.key.as_str().to_owned()).collect(), selected)
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
        assert_eq!(shown(&mut table, 9), (["f", "d", "c", "b", "a"].map(str::to_owned).to_vec(), Some(1)));
        table.replace(rows(&["a", "b", "c", "f"]));
        assert_eq!(selected(&table), "c", "what stands where it stood");
        table.replace(Vec::new());
        assert!(table.selected().is_none() && shown(&mut table, 9) == (Vec::new(), None));
        table.replace(rows(&["x"]));
        assert_eq!(selected(&table), "x");
    }

    #[test]
    fn a_filter_shows_what_contains_it_and_keeps_the_selection_that_it_shows() {
        let mut table = table(&["Job/a", "job/b", "other"]);
        table.select(isize::MAX);
        table.set_filter("JOB".to_owned());
        assert_eq!((table.count(), selected(&table)), (2, "job/b"));
        table.set_filter("job/b".to_owned());
        assert_eq!((table.count(), selected(&table)), (1, "job/b"));
        table.replace(rows(&["job/b", "job/bb", "z"]));
        assert_eq!((table.count(), selected(&table)), (2, "job/b"));
        table.set_filter("nothing like it".to_owned());
        assert!(table.selected().is_none());
        table.select(1);
        table.set_filter(String::new());
        assert_eq!((table.count(), selected(&table)), (3, "job/b"));
    }

    #[test]
    fn the_selection_is_on_the_screen_wherever_it_moves_and_whatever_the_height() {
        let keys: Vec<String> = (0..50).map(|n| format!("{n:02}")).collect();
        let mut table = table(&keys.iter().map(String::as_str).collect::<Vec<_>>());
        let (first, last) = (isize::MIN, isize::MAX);
        for (below, height) in [
            (1, 10),
            (10, 10),
            (10, 3),
            (last, 7),
            (-7, 7),
            (-1, 20),
            (last, 1),
            (-1, 50),
            (first, 5),
            (-5, 5),
            (last, 100),
        ] {
            table.select(below);
            let wanted = selected(&table).to_owned();
            let (on_screen, at) = shown(&mut table, height);
            assert_eq!(on_screen.len(), height.min(50), "no line is wasted");
            assert_eq!(at.and_then(|at| on_screen.get(at)), Some(&wanted), "{below} at {height}");
        }
        assert_eq!(shown(&mut table, 0).0.len(), 0);
        assert_eq!(selected(&table), "49");
    }

    #[test]
    fn a_column_of_which_nothing_is_known_has_no_width_and_the_key_has_one_whatever_its_name_is() {
        let table = table(&["-"]);
        assert_eq!([Column::Key, Column::Reason].map(|column| table.width_of(column, now())), [1, 0]);
    }

    #[test]
    fn every_column_sorts_both_ways_and_what_is_not_known_comes_last_in_both() {
        let mut table = table(&["b", "a", "c"]);
        table.rows.push(row("A", vec![Holder::new(Mode::Exclusive)]));
        for column in Column::ALL {
            table.sort_by(column);
            let up = shown(&mut table, 9).0.concat();
            assert_eq!(table.sort(), Sort { by: column, descending: column == Column::Key });
            table.sort_by(column);
            let down = shown(&mut table, 9).0.concat();
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
