use std::fmt::Display;
use std::io::{self, IsTerminal, Write};
use std::time::Duration;

use leasehold::{Guard, GuardMode, Holders, LockKey, LossReason, Mode, ReleaseOutcome, Result};
use serde::Serialize;

use crate::args::{Command, OnLost};
use crate::child::Ended;
use crate::duration::{millis, spoken};
use crate::exit::{Codes, Failure};
use crate::held::lease_left;
use crate::wording::{self, HolderFields, json_event};

/// Prints what the program does, on standard error: standard output belongs to the command.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Report(Style);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Style {
    /// Prints only what went wrong.
    Plain,
    /// Also prints what happens, for people (`-v`).
    Verbose,
    /// Prints one JSON object a line, for programs (`--json`).
    Json,
}

/// The lines of `--json`. Their names and fields are an interface: see the README.
#[derive(Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
enum Event<'a> {
    Waiting { key: &'a str, backend: &'a str, waited_ms: u64, holders: Vec<HolderFields<'a>> },
    Acquired(Acquired<'a>),
    Started { pid: i32 },
    Lost { key: &'a str, reason: LossReason, action: &'a str, left_ms: u64 },
    Exited { code: Option<u8>, signal: Option<i32> },
    Released { key: &'a str, outcome: &'a str, reason: Option<LossReason>, held_ms: u64 },
    Restarting { pause_ms: u64 },
    Warning { message: String },
    Error { kind: &'a str, message: String, hint: Option<&'a str>, exit_code: u8 },
}

#[derive(Serialize)]
struct Acquired<'a> {
    key: &'a str,
    backend: &'a str,
    mode: Mode,
    token: Option<u64>,
    expires_in_ms: Option<u64>,
    waited_ms: u64,
}

impl Report {
    pub(crate) fn new(command: &Command) -> Self {
        Self(match command {
            Command::Run(run) if run.json => Style::Json,
            Command::Run(run) if run.verbose > 0 => Style::Verbose,
            _ => Style::Plain,
        })
    }

    /// Whether a wait is reported while it lasts, and not only afterwards.
    pub(crate) fn tells_of_waiting(self) -> bool {
        self.0 != Style::Plain
    }

    /// Whether standard error is a terminal on which a line can be redrawn in place.
    pub(crate) fn is_for_a_terminal(self) -> bool {
        self.0 != Style::Json && io::stderr().is_terminal()
    }

    /// Reports that the program waits. `holders` are the holders of the key, or the error of asking for them.
    pub(crate) fn waiting(self, key: &LockKey, backend: &str, waited: Duration, holders: &Result<Holders>) {
        self.event(|| Event::Waiting {
            key: key.as_str(),
            backend,
            waited_ms: millis(waited),
            holders: holders.as_ref().map(HolderFields::all).unwrap_or_default(),
        });
        self.verbose(|| format!("waiting for {}: {}", wording::shown(key.as_str()), in_the_way(holders)));
    }

    /// Reports a grant, after so long a wait, in which `after` was the last holder that was seen.
    pub(crate) fn acquired<M: GuardMode>(self, guard: &Guard<M>, backend: &str, waited: Duration, after: Option<&str>) {
        self.event(|| {
            Event::Acquired(Acquired {
                key: guard.key().as_str(),
                backend,
                mode: M::MODE,
                token: guard.fencing_token().map(Into::into),
                expires_in_ms: lease_left(guard.remaining()).map(millis),
                waited_ms: millis(waited),
            })
        });
        self.verbose(|| {
            let (key, waited) = (wording::shown(guard.key().as_str()), spoken(waited));
            let after = after.map(|who| format!("; it was held by {who}")).unwrap_or_default();
            format!("acquired {key} on {backend} after {waited}{after}")
        });
    }

    pub(crate) fn started(self, pid: i32) {
        self.event(|| Event::Started { pid });
    }

    /// Reports that the lock is lost or, if `left` is not zero, that it will be after `left`.
    pub(crate) fn lost(self, key: &LockKey, reason: LossReason, action: OnLost, left: Duration) {
        let (action, words) = match action {
            OnLost::Term => ("term", "terminating the command"),
            OnLost::Kill => ("kill", "killing the command"),
            OnLost::Ignore => ("ignore", "the command continues without the lock"),
        };
        self.event(|| Event::Lost { key: key.as_str(), reason, action, left_ms: millis(left) });
        self.plain(|| {
            let key = wording::shown(key.as_str());
            let what = match reason {
                _ if left.is_zero() => format!("lost {key}: {reason}"),
                LossReason::MaxHold => format!("{key} has been held for almost as long as --max-hold allows"),
                _ => format!("losing {key} in {}: the store does not renew its lease", spoken(left)),
            };
            format!("{what}; {words}")
        });
    }

    pub(crate) fn exited(self, ended: Ended) {
        self.event(|| match ended {
            Ended::Code(code) => Event::Exited { code: Some(code), signal: None },
            Ended::Signal(signal) => Event::Exited { code: None, signal: Some(signal) },
        });
    }

    /// Reports the outcome of the release. `freed_within` is the time until the lease ends, in case the outcome is unknown.
    pub(crate) fn released(
        self,
        key: &LockKey,
        held: Duration,
        outcome: &Result<ReleaseOutcome>,
        freed_within: Option<Duration>,
    ) {
        let (name, reason) = match outcome {
            Ok(ReleaseOutcome::Released) => ("released", None),
            Ok(ReleaseOutcome::AlreadyLost(reason)) => ("already_lost", Some(*reason)),
            Err(_) => ("unknown", None),
        };
        self.event(|| Event::Released { key: key.as_str(), outcome: name, reason, held_ms: millis(held) });
        let shown = wording::shown(key.as_str());
        match outcome {
            Ok(ReleaseOutcome::Released) => self.verbose(|| format!("released {shown} after {}", spoken(held))),
            Ok(ReleaseOutcome::AlreadyLost(_)) => {}
            Err(error) => self.warn(&format!(
                "{error}; {shown} is free {} at the latest",
                freed_within.map_or_else(|| "when this program ends".to_owned(), |left| format!("in {}", spoken(left)))
            )),
        }
    }

    /// Reports that the command will be started again, once the lock is acquired again after this pause.
    pub(crate) fn restarting(self, pause: Duration) {
        self.event(|| Event::Restarting { pause_ms: millis(pause) });
        self.verbose(|| format!("asking for the lock again in {}, to start the command again", spoken(pause)));
    }

    /// Reports a fault that does not end the program.
    pub(crate) fn warn(self, message: &dyn Display) {
        self.event(|| Event::Warning { message: message.to_string() });
        self.plain(|| format!("warning: {message}"));
    }

    /// Says what somebody who reads the output of a job later needs to know, and programs do not.
    pub(crate) fn note(self, message: &dyn Display) {
        self.plain(|| message.to_string());
    }

    /// Reports why the program failed, and returns the exit code.
    pub(crate) fn failed(self, failure: &Failure, codes: Codes) -> u8 {
        let (kind, exit_code) = failure.kind_and_code(codes);
        let message = failure.to_string();
        self.event(|| Event::Error { kind, message, hint: failure.hint(), exit_code });
        match failure {
            // Who sent the signal knows of it.
            Failure::Interrupted(_) => self.verbose(|| failure.to_string()),
            // With `-E 0` this is no failure, and cron must not send a mail every minute.
            Failure::Busy { .. } if exit_code == 0 => self.verbose(|| failure.to_string()),
            _ => self.plain(|| failure.to_string()),
        }
        if let Some(hint) = failure.hint() {
            self.plain(|| hint.to_owned());
        }
        exit_code
    }

    fn event<'a>(self, event: impl FnOnce() -> Event<'a>) {
        if self.0 == Style::Json {
            put(&json_event(&event()));
        }
    }

    /// Reports a detail, with `-v` only.
    pub(crate) fn verbose(self, text: impl FnOnce() -> String) {
        if self.0 == Style::Verbose {
            put(&format!("leasehold: {}\n", text()));
        }
    }

    fn plain(self, text: impl FnOnce() -> String) {
        if self.0 != Style::Json {
            put(&format!("leasehold: {}\n", text()));
        }
    }
}

/// The reason of a wait, as text: the holders, or the error of asking for them.
pub(crate) fn in_the_way(holders: &Result<Holders>) -> String {
    match holders {
        Ok(holders) => {
            wording::holders(holders).map_or_else(|| "no holder right now".to_owned(), |who| format!("held by {who}"))
        }
        Err(error) => error.to_string(),
    }
}

/// Writes a line in one piece, so that lines of several programs do not mix. An error is ignored: it could be reported to
/// standard error only.
fn put(line: &str) {
    let _ = io::stderr().write_all(line.as_bytes());
}
