use std::time::Duration;

use leasehold::Holder;
use ratatui::Frame;
use ratatui::layout::{Constraint, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::Line;
use ratatui::widgets::{HighlightSpacing, Row as Cells, Table as Grid, TableState};
use unicode_width::UnicodeWidthStr;

use super::column::{Column, GAP, fit};
use super::row::{Now, Row};
use super::table::Sort;
use crate::wording::cut;

/// What is written where nothing is known.
pub(super) const UNKNOWN: &str = "-";

/// What the screen shows beside the state.
#[derive(Clone, Debug)]
pub(super) struct Look {
    /// The store's URL without a password, and the prefix of the keys.
    pub(super) store: String,
    pub(super) prefix: String,
    pub(super) interval: Duration,
    pub(super) colour: bool,
}

/// What marks the selected row, with and without colours.
const MARK: &str = "> ";

impl Look {
    pub(super) fn alarm(&self) -> Style {
        self.coloured(Color::Red).add_modifier(Modifier::BOLD)
    }

    pub(super) fn heading(&self) -> Style {
        self.coloured(Color::Cyan).add_modifier(Modifier::BOLD)
    }

    pub(super) fn notice(&self) -> Style {
        self.coloured(Color::Yellow)
    }

    fn coloured(&self, colour: Color) -> Style {
        if self.colour { Style::new().fg(colour) } else { Style::new() }
    }
}

/// Draws a line for each of these holders, in as many of the columns as fit; each comes with the width that its cells need.
pub(super) fn grid<'r>(
    frame: &mut Frame<'_>,
    columns: impl IntoIterator<Item = (Column, usize)>,
    holders: impl IntoIterator<Item = (&'r Row, &'r Holder)>,
    sort: Option<Sort>,
    (look, now): (&Look, Now),
    (area, selected, old): (Rect, Option<usize>, bool),
) {
    let title = |column: Column| {
        let sign = sort.filter(|sort| sort.by == column).map(|sort| format!(" {}", sort.sign()));
        column.name().to_uppercase() + &sign.unwrap_or_default()
    };
    let whole = |(column, width): (Column, usize)| (column, width.max(column.steady()).max(title(column).width()));
    let columns = fit(columns.into_iter().map(whole).collect(), usize::from(area.width).saturating_sub(MARK.len()));
    let line = |text: &dyn Fn(Column) -> String| {
        Cells::new(columns.iter().map(|(column, width)| {
            let line = Line::from(cut(&text(*column), *width).into_owned());
            if column.is_number() { line.right_aligned() } else { line }
        }))
    };
    let cell = |row: &Row, holder, column| row.cell(holder, column, now).unwrap_or_else(|| UNKNOWN.to_owned());
    let rows = holders.into_iter().map(|(row, holder)| line(&|column| cell(row, holder, column)));
    let cells_of = |width: usize| u16::try_from(width).unwrap_or(u16::MAX);
    let grid = Grid::new(rows, columns.iter().map(|(_, width)| Constraint::Length(cells_of(*width))))
        .header(line(&title).style(look.heading()))
        .column_spacing(cells_of(GAP))
        .style(if old { Style::new().add_modifier(Modifier::DIM) } else { Style::new() })
        .row_highlight_style(Style::new().add_modifier(Modifier::REVERSED))
        .highlight_symbol(MARK)
        .highlight_spacing(HighlightSpacing::Always);
    frame.render_stateful_widget(grid, area, &mut TableState::new().with_selected(selected));
}
