use std::fmt::Display;
use std::io::{self, IsTerminal, Write};
use std::time::Duration;

use leasehold_core::{FencingToken, Holders, LockKey, LossReason, Mode, ReleaseOutcome, Result};
use serde::Serialize;

use crate::args::{Command, OnLost};
use crate::child::Ended;
use crate::duration::{millis, spoken};
use crate::exit::{Codes, Failure};
use crate::words::{self, HolderFields};

/// What the program says of its own work, on standard error: standard output is the command's.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Report(Style);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Style {
    /// Only what went wrong.
    Plain,
    /// For a person who wants to know.
    Verbose,
    /// One event a line, for a program.
    Json,
}

/// The lines of `--json`. Their names and fields are an interface: see the README.
#[derive(Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
enum Event<'a> {
    Waiting {
        key: &'a str,
        backend: &'a str,
        waited_ms: u64,
        holders: Vec<HolderFields<'a>>,
    },
    Acquired {
        key: &'a str,
        backend: &'a str,
        mode: &'a str,
        token: Option<u64>,
        expires_in_ms: Option<u64>,
        waited_ms: u64,
    },
    Started {
        pid: i32,
    },
    Lost {
        key: &'a str,
        reason: &'a str,
        action: &'a str,
        left_ms: u64,
    },
    Exited {
        code: Option<u8>,
        signal: Option<i32>,
    },
    Released {
        key: &'a str,
        outcome: &'a str,
        reason: Option<&'a str>,
        held_ms: u64,
    },
    Warning {
        message: String,
    },
    Error {
        kind: &'a str,
        message: String,
        hint: Option<&'a str>,
        exit_code: u8,
    },
}

impl Report {
    pub(crate) fn new(command: &Command) -> Self {
        Self(match command {
            Command::Run(run) if run.json => Style::Json,
            Command::Run(run) if run.verbose > 0 => Style::Verbose,
            _ => Style::Plain,
        })
    }

    /// Whether somebody wants to know while it waits, and not only afterwards.
    pub(crate) fn tells_of_waiting(self) -> bool {
        self.0 != Style::Plain
    }

    /// Whether a line may be redrawn in place.
    pub(crate) fn is_for_a_terminal(self) -> bool {
        self.0 != Style::Json && io::stderr().is_terminal()
    }

    /// It has to wait; `holders` is who is in the way, if the store could say it.
    pub(crate) fn waiting(self, key: &LockKey, backend: &str, waited: Duration, holders: &Result<Holders>) {
        self.event(|| Event::Waiting {
            key: key.as_str(),
            backend,
            waited_ms: millis(waited),
            holders: holders.as_ref().map(HolderFields::all).unwrap_or_default(),
        });
        self.verbose(|| format!("waiting for {}: {}", words::shown(key.as_str()), in_the_way(holders)));
    }

    pub(crate) fn acquired(self, grant: &Acquired<'_>) {
        let Acquired { key, backend, mode, token, remaining, waited, after } = *grant;
        self.event(|| Event::Acquired {
            key: key.as_str(),
            backend,
            mode: words::mode(mode),
            token: token.map(Into::into),
            expires_in_ms: remaining.map(millis),
            waited_ms: millis(waited),
        });
        self.verbose(|| {
            let after = after.map(|who| format!("; it was held by {who}")).unwrap_or_default();
            format!("acquired {} on {backend} after {}{after}", words::shown(key.as_str()), spoken(waited))
        });
    }

    pub(crate) fn started(self, pid: i32) {
        self.event(|| Event::Started { pid });
    }

    /// It is lost or, if something is `left` of it, about to be.
    pub(crate) fn lost(self, key: &LockKey, reason: LossReason, action: OnLost, left: Duration) {
        let (action, words) = match action {
            OnLost::Term => ("term", "terminating the command"),
            OnLost::Kill => ("kill", "killing the command"),
            OnLost::Ignore => ("ignore", "the command goes on without it"),
        };
        self.event(|| Event::Lost { key: key.as_str(), reason: reason.as_str(), action, left_ms: millis(left) });
        self.plain(|| {
            let key = words::shown(key.as_str());
            let what = match reason {
                _ if left.is_zero() => format!("lost {key}: {reason}"),
                LossReason::MaxHold => format!("{key} has been held for almost as long as --max-hold allows"),
                _ => format!("losing {key} in {}: the store does not answer its renewals", spoken(left)),
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

    /// How the release ended; `freed_within` is when the lease frees the key if nobody knows.
    pub(crate) fn released(
        self,
        key: &LockKey,
        held: Duration,
        outcome: &Result<ReleaseOutcome>,
        freed_within: Option<Duration>,
    ) {
        let (name, reason) = match outcome {
            Ok(ReleaseOutcome::Released) => ("released", None),
            Ok(ReleaseOutcome::AlreadyLost(reason)) => ("already_lost", Some(reason.as_str())),
            Err(_) => ("unknown", None),
        };
        self.event(|| Event::Released { key: key.as_str(), outcome: name, reason, held_ms: millis(held) });
        let shown = words::shown(key.as_str());
        match outcome {
            Ok(ReleaseOutcome::Released) => self.verbose(|| format!("released {shown} after {}", spoken(held))),
            Ok(ReleaseOutcome::AlreadyLost(_)) => {}
            Err(error) => self.warn(&format!(
                "{error}; {shown} is free {} at the latest",
                freed_within.map_or_else(|| "when this program ends".to_owned(), |left| format!("in {}", spoken(left)))
            )),
        }
    }

    /// Something is wrong that does not end the program.
    pub(crate) fn warn(self, message: &dyn Display) {
        self.event(|| Event::Warning { message: message.to_string() });
        self.plain(|| format!("warning: {message}"));
    }

    /// Something that only a person who asked for it wants to know.
    pub(crate) fn remark(self, message: &dyn Display) {
        self.verbose(|| message.to_string());
    }

    /// Says why it failed, and answers the exit code.
    pub(crate) fn failed(self, failure: &Failure, codes: Codes) -> u8 {
        let exit_code = failure.exit_code(codes);
        self.event(|| Event::Error {
            kind: failure.kind(),
            message: failure.to_string(),
            hint: failure.hint(),
            exit_code,
        });
        match failure {
            // Whoever sent it knows.
            Failure::Interrupted(_) => self.verbose(|| failure.to_string()),
            // Somebody for whom this is no failure does not want a message from cron every minute.
            Failure::Busy { .. } if exit_code == 0 => self.verbose(|| failure.to_string()),
            _ => self.plain(|| failure.to_string()),
        }
        if let Some(hint) = failure.hint() {
            self.plain(|| hint.to_owned());
        }
        exit_code
    }

    fn event<'a>(self, event: impl FnOnce() -> Event<'a>) {
        if self.0 == Style::Json
            && let Ok(line) = serde_json::to_string(&event())
        {
            put(&format!("{line}\n"));
        }
    }

    fn verbose(self, text: impl FnOnce() -> String) {
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

/// A grant, as it is reported.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Acquired<'a> {
    pub(crate) key: &'a LockKey,
    pub(crate) backend: &'static str,
    pub(crate) mode: Mode,
    pub(crate) token: Option<FencingToken>,
    pub(crate) remaining: Option<Duration>,
    pub(crate) waited: Duration,
    /// Who was seen to hold it meanwhile.
    pub(crate) after: Option<&'a str>,
}

/// Why it has to wait, in words.
pub(crate) fn in_the_way(holders: &Result<Holders>) -> String {
    match holders {
        Ok(holders) => {
            words::holders(holders).map_or_else(|| "it is being passed on".to_owned(), |who| format!("held by {who}"))
        }
        Err(error) => error.to_string(),
    }
}

/// In one piece, so that lines of several programs do not mix. There is nobody to tell if standard error is closed.
fn put(line: &str) {
    let _ = io::stderr().write_all(line.as_bytes());
}
