use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::text::{Line, Span};
use unicode_width::UnicodeWidthStr;

use super::column::Column;
use super::grid::{Look, grid};
use super::panel;
use super::row::Now;
use super::state::{State, View};
use crate::duration::spoken;
use crate::wording;

/// Draws everything.
pub(super) fn draw(frame: &mut Frame<'_>, state: &mut State, look: &Look, now: Now) {
    let old = state.answers.why_old(now.since, look.interval).map(str::to_owned);
    let warned = u16::from(old.is_some());
    let [top, warning, middle, bottom] = Layout::vertical([
        Constraint::Length(1),
        Constraint::Length(warned),
        Constraint::Fill(1),
        Constraint::Length(1),
    ])
    .areas(frame.area());
    frame.render_widget(summary(state, look, now), top);
    if let Some(why) = &old {
        frame.render_widget(Line::styled(age_of_the_table(state, why, now), look.alarm()), warning);
    }
    table(frame, state, look, now, (middle, old.is_some()));
    match &state.view {
        View::Table | View::Filter => {}
        View::Details(details) => panel::details(frame, state, details, look, now, middle),
        View::Confirm(grant, _) => panel::question(frame, state, grant, look, middle),
        View::Help => panel::help(frame, look, middle),
    }
    last_line(frame, state, look, bottom);
}

/// The store, the number of keys, and how they are sorted and filtered.
fn summary(state: &State, look: &Look, now: Now) -> Line<'static> {
    let (held, shown) = (state.table.rows().len(), state.table.count());
    let number = |n: usize| if n == 1 { "1 key".to_owned() } else { format!("{n} keys") };
    let mut parts = vec![match state.answers.last() {
        None => "asking …".to_owned(),
        Some(_) if state.table.filter().is_empty() => format!("{} held", number(held)),
        Some(_) => format!("{shown} of {} with {}", number(held), wording::shown(state.table.filter())),
    }];
    if !look.prefix.is_empty() {
        parts.push(format!("prefix {}", wording::shown(&look.prefix)));
    }
    let sort = state.table.sort();
    parts.push(format!("by {} {}", sort.by.name(), sort.sign()));
    if let Some(last) = state.answers.last() {
        parts.push(format!("{} ago", spoken(now.since.saturating_sub(last))));
    }
    Line::from(vec![
        Span::styled(wording::shown(&look.store), look.heading()),
        Span::raw(format!("  {}", parts.join("  "))),
    ])
}

fn age_of_the_table(state: &State, why: &str, now: Now) -> String {
    match state.answers.last() {
        Some(last) => format!("OLD: no answer for {}: {why}", spoken(now.since.saturating_sub(last))),
        None => format!("NO ANSWER: {why}"),
    }
}

fn table(frame: &mut Frame<'_>, state: &mut State, look: &Look, now: Now, (area, old): (Rect, bool)) {
    if state.table.count() == 0 {
        let why = match state.answers.last() {
            None => "",
            Some(_) if state.table.rows().is_empty() => "nothing is held",
            Some(_) => "no key matches the filter",
        };
        frame.render_widget(Line::raw(why), area);
        return;
    }
    let mut view = state.table.on_screen(usize::from(area.height).saturating_sub(1));
    let (sort, holders) = (state.table.sort(), state.table.shown().map(|row| (row, row.first())));
    grid(frame, &Column::ALL, holders, Some(sort), (look, now), (area, &mut view, old));
    state.table.top = view.offset();
}

/// The filter while it is typed, else what came of the last thing that was asked for, else the keys.
fn last_line(frame: &mut Frame<'_>, state: &State, look: &Look, area: Rect) {
    if let (View::Filter, true) = (&state.view, area.width > 0 && area.height > 0) {
        // A control character can be pasted.
        let typed = format!("/{}", state.table.filter().escape_debug());
        // The end of a long filter is seen, where it is typed.
        let room = usize::from(area.width) - 1;
        let from =
            typed.char_indices().map(|(at, _)| at).find(|at| typed[*at..].width() <= room).unwrap_or(typed.len());
        let seen = &typed[from..];
        let end = area.x.saturating_add(u16::try_from(seen.width()).unwrap_or(u16::MAX));
        frame.set_cursor_position((end.min(area.right() - 1), area.y));
        frame.render_widget(Line::raw(seen.to_owned()), area);
        return;
    }
    let line = match (&state.message, &state.view) {
        (Some(message), _) => Line::styled(message.clone(), look.notice()),
        (None, View::Table | View::Filter) => {
            Line::raw("Enter details  x force-release  / filter  s sort  r reverse  ? help  q quit")
        }
        (None, View::Details(_)) => Line::raw("↑ ↓ choose  x force-release  Esc back  q quit"),
        (None, View::Confirm(..)) => Line::raw("y release by force  n leave it"),
        (None, View::Help) => Line::raw("any key: back"),
    };
    frame.render_widget(line, area);
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use leasehold::{Holder, Mode};
    use ratatui::buffer::{Buffer, Cell};

    use super::super::samples::{self, holder, now, press, row};
    use super::*;

    fn state() -> State {
        let mut reader = holder("a very long label of somebody who is called bob", 9);
        (reader.mode, reader.reason) = (Mode::Shared, Some("nightly\treport".to_owned()));
        let mut ada = holder("ada", 7);
        ada.reason = Some("nightly".to_owned());
        let mut readers = row("job/鍵鍵\u{1b}[2J", vec![reader.clone(), holder("bob", 8), reader]);
        readers.waiters = Some(3);
        let mut state = State::default();
        let rows = vec![row("job/a", vec![ada]), readers, row("job/z", vec![Holder::new(Mode::Exclusive)])];
        state.answered(Ok(rows), Duration::from_secs(20), Duration::ZERO);
        state
    }

    fn drawn(state: &mut State, size: (u16, u16)) -> Buffer {
        let (store, prefix) = ("redis://db1:6379".to_owned(), "job/".to_owned());
        samples::drawn(state, &Look { store, prefix, interval: Duration::from_secs(60), colour: true }, size)
    }

    #[test]
    fn nothing_panics_in_a_terminal_of_any_size_and_no_control_character_is_drawn() {
        for keys in ["", "/鍵", "/nothing like it", "\n", "jx", "x", "?", "jj\n", "js\nx"] {
            for width in (0..12).chain([25, 39, 79, 200]) {
                for height in [0, 1, 2, 3, 5, 8, 13] {
                    let mut state = state();
                    press(&mut state, keys);
                    let screen = drawn(&mut state, (width, height));
                    let mut symbols = screen.content().iter().map(Cell::symbol);
                    assert!(!symbols.any(|symbol| symbol.contains(char::is_control)), "{keys} {screen:?}");
                    state.answered(Err("connection refused".to_owned()), now().since, Duration::ZERO);
                    drawn(&mut state, (width, height));
                }
            }
        }
    }

    #[test]
    fn the_readme_shows_what_is_drawn() {
        let rows = [
            ("backup/db1", "root@db1 pid 4711", "base backup", 4320, 1, 1),
            ("cron/mail", "mail@web2 pid 812", "", 8, 1, 0),
            ("report/42", "app1 pid 20", "nightly report", 40, 3, 0),
        ]
        .map(|(key, label, reason, held, holders, waiters)| {
            let mut holder = holder(label, held);
            holder.reason = Some(reason.to_owned()).filter(|reason| !reason.is_empty());
            holder.mode = if holders > 1 { Mode::Shared } else { Mode::Exclusive };
            let mut row = row(key, vec![holder; holders]);
            row.waiters = Some(waiters);
            row
        });
        let mut state = State::default();
        state.answered(Ok(rows.to_vec()), Duration::from_secs(20), Duration::ZERO);
        let store = "redis-rw://db1:6379".to_owned();
        let look = Look { store, prefix: String::new(), interval: Duration::from_secs(60), colour: true };
        let screen = samples::drawn(&mut state, &look, (106, 6));
        let lines = screen.content().chunks(106).map(|line| line.iter().map(Cell::symbol).collect::<String>());
        let lines: Vec<_> = lines.map(|line| line.trim_end().to_owned()).collect();
        assert!(include_str!("../../README.md").contains(&lines.join("\n")), "{}", lines.join("\n"));
    }

    #[test]
    fn a_page_is_as_many_rows_as_the_screen_has() {
        let mut state = State::default();
        let rows = (10..60).map(|number| row(&number.to_string(), vec![holder("ada", number)])).collect();
        state.answered(Ok(rows), Duration::from_secs(20), Duration::ZERO);
        // Of its lines one is for the titles, one above the table, and one below.
        drawn(&mut state, (80, 13));
        for (typed, key) in [(" ", "20"), (" j", "31"), ("G", "59"), ("k", "58"), ("g", "10")] {
            press(&mut state, typed);
            assert_eq!(state.table.selected().unwrap().key.as_str(), key, "{typed}");
        }
    }
}
