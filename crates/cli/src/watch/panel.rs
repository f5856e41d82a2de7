//! What is drawn in front of the table: the details of a key, the question before a forced release, and the help.

use leasehold::{Holder, Mode};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::text::Line;
use ratatui::widgets::{Block, Clear, Paragraph, TableState, Wrap};
use unicode_width::UnicodeWidthStr;

use super::column::Column;
use super::grid::{Look, UNKNOWN, grid};
use super::row::{Now, Row};
use super::state::{Details, Grant, State};
use crate::wording;

const OF_A_HOLDER: [Column; 6] =
    [Column::Label, Column::Mode, Column::Reason, Column::Token, Column::Held, Column::Left];

const HELP: &str = "\
↑ ↓ PgUp PgDn Home End   choose a key (also k j g G)
Enter                    all that is known of it, with all its holders
x                        release the chosen grant by force; asks first
/                        filter: key, mode, label or reason contains the text
Esc                      back; in the table: no filter
s S, 1 to 9              sort by the next or previous column, or by the n-th
r                        sort the other way
Ctrl-L Ctrl-Z            draw again; stop, fg goes on
q Ctrl-C                 quit

Of several holders the table shows the one that has held the key longest.
LEFT runs down between two answers of the store; a renewal sets it up again.
HELD compares this machine's clock with the store's. - means not known.";

/// All that is known of one key.
pub(super) fn details(frame: &mut Frame<'_>, state: &State, of: &Details, look: &Look, now: Now, area: Rect) {
    frame.render_widget(Clear, area);
    let key = wording::shown(of.key.as_str());
    let Some(row) = state.table.row(&of.key) else {
        frame.render_widget(wrapped(&format!("{key}\n\nNobody holds it now.")), area);
        return;
    };
    let summary = format!("{key}\n{}", in_short(row));
    let [name, holders, texts] = Layout::vertical([
        Constraint::Length(rows(&summary, area.width).min(area.height / 3)),
        Constraint::Fill(1),
        Constraint::Length(area.height / 3),
    ])
    .areas(area);
    let selected = of.selected(row);
    frame.render_widget(wrapped(&summary), name);
    let mut view = TableState::new().with_selected(selected.map(|(at, _)| at));
    let all = row.holders.iter().map(|holder| (row, holder));
    grid(frame, &OF_A_HOLDER, all, None, (look, now), (holders, &mut view, false));
    if let Some((_, holder)) = selected {
        frame.render_widget(wrapped(&in_full(row, holder, now)), texts);
    }
}

/// The mode, and how many hold the key and wait for it.
fn in_short(row: &Row) -> String {
    let holders = match (row.holders.first().map(|holder| holder.mode), row.holders.len()) {
        (Some(Mode::Shared), 1) => "one reader holds it".to_owned(),
        (Some(Mode::Shared), n) => format!("{n} readers hold it"),
        _ => "held exclusively".to_owned(),
    };
    match row.waiters {
        None => holders,
        Some(0) => format!("{holders}, nobody waits"),
        Some(1) => format!("{holders}, one waits"),
        Some(n) => format!("{holders}, {n} wait"),
    }
}

/// The selected holder with its whole texts, which may be too long for the table.
fn in_full(row: &Row, holder: &Holder, now: Now) -> String {
    let lines = [Column::Label, Column::Reason, Column::Token].map(|column| {
        let cell = row.cell(holder, column, now);
        format!("{:8}{}", column.name(), cell.as_deref().unwrap_or(UNKNOWN))
    });
    lines.join("\n")
}

/// Asks whether a grant shall be released by force, and names it.
pub(super) fn question(frame: &mut Frame<'_>, state: &State, grant: &Grant, look: &Look, area: Rect) {
    let key = wording::shown(grant.key.as_str());
    let holder = wording::holder(&grant.holder);
    let token = grant.holder.token.map_or_else(|| "none".to_owned(), |token| token.to_string());
    let what_happens = match state.row_of(grant).map(|row| row.holders.len() - 1) {
        None => "This grant has ended: there is nothing to release.\n\nn goes back.".to_owned(),
        Some(others) => {
            let others = match others {
                0 => String::new(),
                1 => " The other reader of the key keeps it.".to_owned(),
                n => format!(" The {n} other readers of the key keep it."),
            };
            format!(
                "The holder learns of it at its next renewal, and goes on until then as if it held the key.{others}\n\n\
                 y releases it, n leaves it."
            )
        }
    };
    let text = format!("Release {key} by force?\n\nholder  {holder}\ntoken   {token}\n\n{what_happens}");
    boxed(frame, " force-release ", &text, look, area);
}

pub(super) fn help(frame: &mut Frame<'_>, look: &Look, area: Rect) {
    boxed(frame, " help ", HELP, look, area);
}

/// A box with a title in the middle of the area, as large as its text needs.
fn boxed(frame: &mut Frame<'_>, title: &'static str, text: &str, look: &Look, area: Rect) {
    let width = area.width.min(80);
    let height = rows(text, width.saturating_sub(2)).saturating_add(2).min(area.height);
    let place = Rect { x: area.x + (area.width - width) / 2, y: area.y + (area.height - height) / 2, width, height };
    frame.render_widget(Clear, place);
    let block = Block::bordered().title(Line::styled(title, look.heading()));
    frame.render_widget(wrapped(text).block(block), place);
}

/// How many lines a text takes, and one more in case it is broken between words.
fn rows(text: &str, width: u16) -> u16 {
    let lines = text.split('\n').map(|line| line.width().div_ceil(usize::from(width).max(1)).max(1));
    u16::try_from(lines.sum::<usize>() + 1).unwrap_or(u16::MAX)
}

fn wrapped(text: &str) -> Paragraph<'_> {
    Paragraph::new(text).wrap(Wrap { trim: false })
}
