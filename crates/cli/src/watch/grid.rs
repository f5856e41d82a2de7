use std::time::Duration;

use ratatui::Frame;
use ratatui::layout::{Constraint, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::Line;
use ratatui::widgets::{HighlightSpacing, Row as Cells, Table as Grid, TableState};

use super::column::{Column, GAP};
use crate::wording::cut;

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
pub(super) const MARK: &str = "> ";

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

/// One line of a table.
pub(super) fn cells(columns: &[(Column, usize)], text: impl Fn(Column) -> String) -> Cells<'static> {
    Cells::new(columns.iter().map(|(column, width)| {
        let line = Line::from(cut(&text(*column), *width).into_owned());
        if column.is_number() { line.right_aligned() } else { line }
    }))
}

/// Draws lines under titles; `old` ones are dim.
pub(super) fn grid(
    frame: &mut Frame<'_>,
    columns: &[(Column, usize)],
    titles: Cells<'static>,
    rows: Vec<Cells<'static>>,
    (area, selected, old): (Rect, Option<usize>, bool),
) {
    let cells_of = |width: usize| u16::try_from(width).unwrap_or(u16::MAX);
    let widths = columns.iter().map(|(_, width)| Constraint::Length(cells_of(*width)));
    let style = if old { Style::new().add_modifier(Modifier::DIM) } else { Style::new() };
    let grid = Grid::new(rows, widths)
        .header(titles)
        .column_spacing(cells_of(GAP))
        .style(style)
        .row_highlight_style(Style::new().add_modifier(Modifier::REVERSED))
        .highlight_symbol(MARK)
        .highlight_spacing(HighlightSpacing::Always);
    frame.render_stateful_widget(grid, area, &mut TableState::new().with_selected(selected));
}
