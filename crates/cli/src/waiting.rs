use std::convert::Infallible;
use std::io::{self, Write};
use std::time::Duration;

use leasehold::{Admin, Error, ErrorKind, Holders, LockKey, Result};

use crate::duration::spoken;
use crate::report::{Report, in_the_way};
use crate::stopwatch::Stopwatch;
use crate::wording::{self, cut};

/// Waits shorter than this are not reported.
const UNREPORTED: Duration = Duration::from_millis(300);
/// How often the line on the terminal is redrawn.
const REDRAW: Duration = Duration::from_secs(1);
/// A wait of which nothing else is told is told of after so long.
const LONG: Duration = Duration::from_secs(60);
/// How often the store is asked when nothing is drawn.
const CHECK: Duration = Duration::from_secs(10);

/// Reports, while the program waits for a lock, how long it has waited and who holds the lock.
#[derive(Debug)]
pub(crate) struct Waiting<'a> {
    key: &'a LockKey,
    /// The keys that stand in the way: this one, and others that are asked for with it, or those of a semaphore's slots.
    keys: &'a [LockKey],
    backend: &'static str,
    /// The store, as it is shown to people and programs.
    place: &'a str,
    admin: &'a dyn Admin,
    report: Report,
    stopwatch: Stopwatch,
    /// The last holder that was seen.
    holder: Option<String>,
    line: Option<Line>,
    /// Whether the wait is told of once when it is long.
    tells_when_long: bool,
}

impl<'a> Waiting<'a> {
    pub(crate) fn new(
        key: &'a LockKey,
        keys: &'a [LockKey],
        (backend, place): (&'static str, &'a str),
        admin: &'a dyn Admin,
        report: Report,
    ) -> Self {
        let line = report.is_for_a_terminal().then(Line::default);
        let tells_when_long = line.is_none() && !report.tells_of_waiting();
        let stopwatch = Stopwatch::start();
        Self { key, keys, backend, place, admin, report, stopwatch, holder: None, line, tells_when_long }
    }

    pub(crate) fn waited(&self) -> Duration {
        self.stopwatch.read()
    }

    /// The last holder that was seen.
    pub(crate) fn holder(&self) -> Option<&str> {
        self.holder.as_deref()
    }

    /// Removes the line from the terminal.
    pub(crate) fn wipe(&mut self) {
        self.line = None;
    }

    /// Reports until the future is dropped.
    pub(crate) async fn report(&mut self) -> Infallible {
        let is_reported = self.line.is_some() || self.report.tells_of_waiting();
        tokio::time::sleep(if is_reported { UNREPORTED } else { CHECK }).await;
        let mut told = false;
        let mut silent = false;
        loop {
            let seen = self.look().await;
            if !told {
                self.report.waiting(self.named(&seen), self.place, self.waited(), &seen);
                told = true;
            }
            // Without a line on the terminal, a store that is gone must not go unnoticed for the whole wait.
            if let Err(error) = &seen
                && !silent
                && self.line.is_none()
            {
                self.report.warn(&format!("still waiting for {}: {error}", wording::shown(self.key.as_str())));
            }
            silent = seen.is_err();
            if let Some(text) = self.told_when_long(self.waited(), &seen) {
                self.report.note(&text);
            }
            let (key, waited) = (wording::shown(self.named(&seen).as_str()), spoken(self.waited()));
            if let Some(line) = &mut self.line {
                line.draw(&format!("waiting {waited} for {key}: {}", in_the_way(&seen)));
            }
            tokio::time::sleep(if self.line.is_some() { REDRAW } else { CHECK }).await;
        }
    }

    /// What is said of a wait that has become long: a job that waits in silence for ever looks like one that hangs.
    fn told_when_long(&mut self, waited: Duration, seen: &Result<Holders>) -> Option<String> {
        let is_time = self.tells_when_long && waited >= LONG && seen.is_ok();
        self.tells_when_long &= !is_time;
        is_time.then(|| {
            let (key, waited) = (wording::shown(self.named(seen).as_str()), spoken(waited));
            format!("waiting for {key} since {waited}: {}", in_the_way(seen))
        })
    }

    /// Asks the store who holds the keys, for one second at most.
    pub(crate) async fn look(&mut self) -> Result<Holders> {
        let silence = || Error::new(ErrorKind::Unavailable, "inspect").with_backend(self.backend).key(self.key);
        let seen = tokio::time::timeout(REDRAW, self.inspect()).await;
        let seen = seen.unwrap_or_else(|_| Err(silence().detail("the store does not answer")));
        if let Ok(holders) = &seen
            && let Some(who) = wording::holders(holders)
        {
            self.holder = Some(who);
        }
        seen
    }

    async fn inspect(&self) -> Result<Holders> {
        let mut all = Holders::new(self.key, Vec::new());
        // The slots of a semaphore are no keys that the user knows.
        let are_known = self.keys.contains(self.key);
        for key in self.keys {
            let held = self.admin.inspect(key).await?;
            if are_known && all.holders.is_empty() && !held.holders.is_empty() {
                all.key = held.key;
            }
            all.holders.extend(held.holders);
        }
        Ok(all)
    }

    /// The key that is waited for: of several, one that others hold.
    fn named<'s>(&'s self, seen: &'s Result<Holders>) -> &'s LockKey {
        seen.as_ref().map_or(self.key, |holders| &holders.key)
    }
}

/// A line on the terminal that is redrawn in place, and removed when this is dropped.
#[derive(Debug, Default)]
struct Line {
    drawn: bool,
}

impl Line {
    fn draw(&mut self, text: &str) {
        let size = rustix::termios::tcgetwinsize(io::stderr()).map_or(0, |size| usize::from(size.ws_col));
        // A terminal that does not know its size reports zero.
        let width = if size == 0 { 80 } else { size };
        // One column less than the terminal has, so that it never wraps the line.
        let text = cut(text, width.saturating_sub(1));
        let _ = io::stderr().write_all(format!("\r\x1b[K{text}").as_bytes());
        self.drawn = true;
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        if self.drawn {
            let _ = io::stderr().write_all(b"\r\x1b[K");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::slice;

    use clap::Parser;
    use leasehold::{Holder, Memory, Mode};

    use super::*;
    use crate::args::Cli;

    #[test]
    fn a_long_wait_is_told_once_with_the_holder_where_nothing_else_tells_of_it() {
        let (key, memory) = (LockKey::new("k").unwrap(), Memory::new());
        let mut holder = Holder::new(Mode::Exclusive);
        holder.label = Some("ada@db1 pid 7".to_owned());
        let seen = Ok(Holders::new(&key, vec![holder]));
        let down = Err(Error::new(ErrorKind::Unavailable, "inspect"));
        let told = |options: &[&str]| {
            let command = Cli::parse_from([&["leasehold", "run"], options, &["k", "true"]].concat()).command;
            let mut waiting =
                Waiting::new(&key, slice::from_ref(&key), ("memory", "memory:"), &memory, Report::new(&command));
            waiting.line = None;
            waiting.tells_when_long = !waiting.report.tells_of_waiting();
            [(59, &seen), (60, &down), (61, &seen), (120, &seen)]
                .map(|(waited, seen)| waiting.told_when_long(Duration::from_secs(waited), seen))
        };
        let line = "waiting for k since 1 m 1 s: held by ada@db1 pid 7".to_owned();
        assert_eq!(told(&[]), [None, None, Some(line), None]);
        for tells_already in ["-v", "--json"] {
            assert_eq!(told(&[tells_already]), [None, None, None, None], "{tells_already}");
        }
    }
}
