//! What the tests of the table show, and what is typed into it.

use std::time::{Duration, SystemTime};

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use leasehold::{FencingToken, Holder, Holders, LockKey, Mode};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::buffer::Buffer;

use super::draw::draw;
use super::grid::Look;
use super::row::{Now, Row};
use super::state::{Effect, State};

/// An hour after 1970, half a minute after the program began.
pub(super) fn now() -> Now {
    Now { since: Duration::from_secs(30), wall: SystemTime::UNIX_EPOCH + Duration::from_secs(3600) }
}

pub(super) fn holder(label: &str, token: u64) -> Holder {
    let mut holder = Holder::new(Mode::Exclusive);
    holder.label = Some(label.to_owned());
    holder.token = Some(FencingToken::of_epoch(token));
    holder.granted_at = Some(now().wall - Duration::from_secs(token));
    holder.remaining = Some(Duration::from_secs(20));
    holder
}

/// A key that the store said 10 s ago to be held by these.
pub(super) fn row(key: &str, holders: Vec<Holder>) -> Row {
    let key = LockKey::new(key).unwrap();
    Row::new(Holders::new(&key, holders), Duration::from_secs(20)).unwrap()
}

pub(super) fn press(state: &mut State, keys: &str) -> Option<Effect> {
    keys.chars().fold(None, |_, key| {
        let code = if key == '\n' { KeyCode::Enter } else { KeyCode::Char(key) };
        state.pressed(KeyEvent::new(code, KeyModifiers::NONE))
    })
}

pub(super) fn drawn(state: &mut State, look: &Look, (width, height): (u16, u16)) -> Buffer {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| draw(frame, state, look, now())).unwrap();
    terminal.backend().buffer().clone()
}
