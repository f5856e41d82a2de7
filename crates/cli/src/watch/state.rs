use std::time::Duration;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use leasehold::{FencingToken, Holder, LockKey};

use super::column::Column;
use super::row::Row;
use super::table::{Table, moved};
use crate::wording;

/// All that the screen shows, and what keys and answers do to it.
#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) table: Table,
    pub(super) view: View,
    pub(super) answers: Answers,
    /// What came of the last thing that was asked for, until the next key is pressed.
    pub(super) message: Option<String>,
    /// What was released by force, and what was not, in words.
    pub(super) done: Vec<String>,
}

/// What is in front.
#[derive(Clone, Debug, Default)]
pub(super) enum View {
    #[default]
    Table,
    /// The filter is being typed.
    Filter,
    Details(Details),
    /// The question whether a grant shall be released by force, and the details from which it was asked.
    Confirm(Grant, Option<Details>),
    Help,
}

/// The holders of one key, one of them selected by its token, and the first without it.
#[derive(Clone, Debug)]
pub(super) struct Details {
    pub(super) key: LockKey,
    token: Option<FencingToken>,
}

/// One grant of a key, as the table showed it.
#[derive(Clone, Debug)]
pub(super) struct Grant {
    pub(super) key: LockKey,
    pub(super) holder: Holder,
}

/// What a key asks the program to do.
#[derive(Debug)]
pub(super) enum Effect {
    Quit,
    /// Stop, so that the shell shows its prompt (Ctrl-Z).
    Suspend,
    /// Draw every cell again, as something else wrote to the terminal.
    Redraw,
    ForceRelease(Grant),
}

/// How old the table is, and why.
#[derive(Debug, Default)]
pub(super) struct Answers {
    /// When the last complete answer came, and how long it took.
    last: Option<(Duration, Duration)>,
    /// Why there was none since.
    failed: Option<String>,
}

impl Answers {
    /// When the last complete answer came.
    pub(super) fn last(&self) -> Option<Duration> {
        self.last.map(|(came, _)| came)
    }

    /// Why the table is old. `None`: it is not, or there is none yet.
    pub(super) fn why_old(&self, now: Duration, interval: Duration) -> Option<&str> {
        /// An answer that takes so much longer than the one before is late.
        const SLOW: Duration = Duration::from_secs(2);
        let late = |(came, took): (Duration, Duration)| {
            let pause = interval.max(took);
            now > came.saturating_add(pause).saturating_add(took.saturating_mul(2)).saturating_add(SLOW)
        };
        match &self.failed {
            Some(why) => Some(why),
            None => self.last.is_some_and(late).then_some("the store has not answered yet"),
        }
    }
}

impl State {
    /// Takes an answer of the store that came at `now`, and for which it was asked `took` before.
    pub(super) fn answered(&mut self, answer: Result<Vec<Row>, String>, now: Duration, took: Duration) {
        match answer {
            Ok(rows) => {
                self.table.replace(rows);
                self.answers = Answers { last: Some((now, took)), failed: None };
            }
            Err(why) => self.answers.failed = Some(why),
        }
    }

    /// Takes the outcome of a forced release, in words.
    pub(super) fn forced(&mut self, outcome: String) {
        self.message = Some(outcome.clone());
        self.done.push(outcome);
    }

    /// Takes a key, and answers what the program has to do.
    pub(super) fn pressed(&mut self, key: KeyEvent) -> Option<Effect> {
        self.message = None;
        if key.modifiers.contains(KeyModifiers::CONTROL) {
            match key.code {
                KeyCode::Char('c') => return Some(Effect::Quit),
                KeyCode::Char('z') => return Some(Effect::Suspend),
                KeyCode::Char('l') => return Some(Effect::Redraw),
                _ => {}
            }
        }
        match std::mem::take(&mut self.view) {
            View::Table => self.in_table(key),
            View::Filter => self.in_filter(key),
            View::Details(details) => self.in_details(key, details),
            View::Confirm(grant, from) => self.in_question(key, grant, from),
            // Any key closes it.
            View::Help => None,
        }
    }

    fn in_table(&mut self, key: KeyEvent) -> Option<Effect> {
        if let Some(below) = movement(key.code, self.table.page) {
            self.table.select(below);
            return None;
        }
        match key.code {
            KeyCode::Char('q') => return Some(Effect::Quit),
            KeyCode::Char('?' | 'h') | KeyCode::F(1) => self.view = View::Help,
            KeyCode::Char('/') => self.view = View::Filter,
            KeyCode::Esc => self.table.set_filter(String::new()),
            KeyCode::Char('s') | KeyCode::Right => self.table.sort_by_next(false),
            KeyCode::Char('S') | KeyCode::Left => self.table.sort_by_next(true),
            KeyCode::Char('r') => self.table.sort_by(self.table.sort().by),
            KeyCode::Char(digit @ '1'..='9') => {
                let column = digit.to_digit(10).and_then(|digit| Column::ALL.get(digit as usize - 1));
                self.table.sort_by(*column?);
            }
            KeyCode::Enter => self.view = self.details(),
            KeyCode::Char('x') | KeyCode::Delete => self.ask_in_table(),
            _ => {}
        }
        None
    }

    fn in_filter(&mut self, key: KeyEvent) -> Option<Effect> {
        let mut filter = self.table.filter().to_owned();
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Enter => return None,
            KeyCode::Esc => {
                self.table.set_filter(String::new());
                return None;
            }
            KeyCode::Char('u') if control => filter.clear(),
            KeyCode::Char('h') if control => drop(filter.pop()),
            KeyCode::Backspace => drop(filter.pop()),
            KeyCode::Char(letter) if !control => filter.push(letter),
            code => {
                let movement = movement(code, self.table.page);
                if let Some(below) = movement.filter(|_| !matches!(code, KeyCode::Char(_))) {
                    self.table.select(below);
                }
            }
        }
        self.view = View::Filter;
        if filter != self.table.filter() {
            self.table.set_filter(filter);
        }
        None
    }

    fn in_details(&mut self, key: KeyEvent, mut details: Details) -> Option<Effect> {
        let row = self.table.row(&details.key);
        match key.code {
            KeyCode::Char('q') => return Some(Effect::Quit),
            KeyCode::Esc | KeyCode::Enter | KeyCode::Backspace => return None,
            KeyCode::Char('x') | KeyCode::Delete => {
                if let Some((_, holder)) = row.and_then(|row| details.selected(row)) {
                    let grant = Grant { key: details.key.clone(), holder: holder.clone() };
                    self.view = View::Confirm(grant, Some(details));
                    return None;
                }
            }
            code => {
                if let (Some(below), Some(row)) = (movement(code, 10), row) {
                    let at = details.selected(row).map_or(0, |(at, _)| at);
                    let chosen = row.holders.get(moved(at, below, row.holders.len()));
                    details.token = chosen.and_then(|holder| holder.token);
                }
            }
        }
        self.view = View::Details(details);
        None
    }

    fn in_question(&mut self, key: KeyEvent, grant: Grant, from: Option<Details>) -> Option<Effect> {
        let back = |from: Option<Details>| from.map_or(View::Table, View::Details);
        match key.code {
            KeyCode::Char('y' | 'Y') => {
                self.view = back(from);
                if self.row_of(&grant).is_some() {
                    self.message = Some(format!("releasing {} …", wording::shown(grant.key.as_str())));
                    return Some(Effect::ForceRelease(grant));
                }
                self.message = Some(format!("{}: that grant has ended", wording::shown(grant.key.as_str())));
            }
            KeyCode::Char('n' | 'N' | 'q') | KeyCode::Esc => {
                self.view = back(from);
                self.message = Some("nothing was released".to_owned());
            }
            // Whatever else was typed must neither release nor hide the question.
            _ => self.view = View::Confirm(grant, from),
        }
        None
    }

    /// Asks about the selected key's grant; of several holders, one has to be chosen first.
    fn ask_in_table(&mut self) {
        let Some(row) = self.table.selected() else { return };
        if let [holder] = row.holders.as_slice() {
            self.view = View::Confirm(Grant { key: row.key.clone(), holder: holder.clone() }, None);
        } else {
            self.view = self.details();
            self.message = Some("it has several holders: choose one, then x".to_owned());
        }
    }

    fn details(&self) -> View {
        let of = |row: &Row| View::Details(Details { key: row.key.clone(), token: None });
        self.table.selected().map_or(View::Table, of)
    }

    /// The row of a grant's key, if the newest answer still has the grant.
    pub(super) fn row_of(&self, grant: &Grant) -> Option<&Row> {
        // All tokens of a lease have its epoch.
        let epoch = |holder: &Holder| holder.token.map(FencingToken::epoch);
        self.table.row(&grant.key).filter(|row| row.holders.iter().any(|holder| epoch(holder) == epoch(&grant.holder)))
    }
}

impl Details {
    /// The selected holder and its place.
    pub(super) fn selected<'a>(&self, row: &'a Row) -> Option<(usize, &'a Holder)> {
        let at = row.holders.iter().position(|holder| holder.token == self.token).unwrap_or(0);
        row.holders.get(at).map(|holder| (at, holder))
    }
}

/// By how many rows a key moves the selection down, where so many are on the screen.
fn movement(code: KeyCode, page: usize) -> Option<isize> {
    let page = page.max(1).cast_signed();
    Some(match code {
        KeyCode::Up | KeyCode::Char('k') => -1,
        KeyCode::Down | KeyCode::Char('j') => 1,
        KeyCode::PageUp => -page,
        KeyCode::PageDown | KeyCode::Char(' ') => page,
        KeyCode::Home | KeyCode::Char('g') => isize::MIN,
        KeyCode::End | KeyCode::Char('G') => isize::MAX,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::super::samples::{holder, press, row};
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn state(rows: Vec<Row>) -> State {
        let mut state = State::default();
        state.answered(Ok(rows), SECOND, Duration::ZERO);
        state
    }

    #[test]
    fn a_grant_that_ended_while_the_question_was_open_is_not_released() {
        for now in [vec![], vec![row("k", vec![holder("bob", 8)])]] {
            let mut state = state(vec![row("k", vec![holder("ada", 7)])]);
            press(&mut state, "x");
            state.answered(Ok(now), 2 * SECOND, Duration::ZERO);
            assert!(matches!(state.view, View::Confirm(..)) && press(&mut state, "y").is_none());
            assert!(state.message.is_some_and(|message| message.contains("has ended")));
        }
    }

    #[test]
    fn a_table_is_old_after_a_failure_or_when_an_answer_is_late_and_not_before() {
        let mut state = State::default();
        assert_eq!(state.answers.why_old(100 * SECOND, SECOND), None, "there is none yet");
        state.answered(Ok(vec![row("k", vec![holder("ada", 7)])]), SECOND, Duration::ZERO);
        assert_eq!(state.answers.why_old(2 * SECOND, SECOND), None);
        assert!(state.answers.why_old(10 * SECOND, SECOND).is_some());
        assert_eq!(state.answers.why_old(10 * SECOND, 60 * SECOND), None, "it was not asked since");
        state.answered(Err("connection refused".to_owned()), 2 * SECOND, Duration::ZERO);
        assert_eq!(state.answers.why_old(2 * SECOND, SECOND), Some("connection refused"));
        assert_eq!((state.table.count(), state.answers.last()), (1, Some(SECOND)), "the old table stays");
        state.answered(Ok(Vec::new()), 3 * SECOND, 5 * SECOND);
        assert_eq!(state.answers.why_old(15 * SECOND, SECOND), None, "this store takes 5 s to answer");
        assert!(state.answers.why_old(40 * SECOND, SECOND).is_some());
    }
}
