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

/// Draws a line for each of these holders, in as many of the columns as fit. What the store does not tell of any has no column.
pub(super) fn grid<'r>(
    frame: &mut Frame<'_>,
    columns: &[Column],
    holders: impl Iterator<Item = (&'r Row, &'r Holder)>,
    sort: Option<Sort>,
    (look, now): (&Look, Now),
    (area, view, old): (Rect, &mut TableState, bool),
) {
    let title = |column: Column| {
        let sign = sort.filter(|sort| sort.by == column).map(|sort| format!(" {}", sort.sign()));
        column.name().to_uppercase() + &sign.unwrap_or_default()
    };
    let holders: Vec<_> = holders.collect();
    let cells = |column: &Column| holders.iter().map(|(row, holder)| row.cell(holder, *column, now)).collect();
    let all: Vec<(Column, Vec<_>)> = columns.iter().map(|column| (*column, cells(column))).collect();
    let whole = |(column, cells): &(Column, Vec<Option<String>>)| {
        let widest = cells.iter().flatten().map(|cell| cell.width()).max()?;
        Some((*column, widest.max(column.steady()).max(title(*column).width())))
    };
    let columns = fit(all.iter().filter_map(whole).collect(), usize::from(area.width).saturating_sub(MARK.len()));
    let line = |text: &dyn Fn(Column) -> String| {
        Cells::new(columns.iter().map(|(column, width)| {
            let line = Line::from(cut(&text(*column), *width).into_owned());
            if column.is_number() { line.right_aligned() } else { line }
        }))
    };
    let cell = |at: usize, column: Column| {
        let cells = all.iter().find(|(of, _)| *of == column).and_then(|(_, cells)| cells[at].clone());
        cells.unwrap_or_else(|| UNKNOWN.to_owned())
    };
    let rows = (0..holders.len()).map(|at| line(&|column| cell(at, column)));
    let cells_of = |width: usize| u16::try_from(width).unwrap_or(u16::MAX);
    let grid = Grid::new(rows, columns.iter().map(|(_, width)| Constraint::Length(cells_of(*width))))
        .header(line(&title).style(look.heading()))
        .column_spacing(cells_of(GAP))
        .style(if old { Style::new().add_modifier(Modifier::DIM) } else { Style::new() })
        .row_highlight_style(Style::new().add_modifier(Modifier::REVERSED))
        .highlight_symbol(MARK)
        .highlight_spacing(HighlightSpacing::Always);
    frame.render_stateful_widget(grid, area, view);
}
