use std::error::Error as StdError;
use std::fmt;
use std::io;
use std::iter::successors;
use std::time::Duration;

use clap::Args;
use leasehold::{Error, ErrorKind, Holders, LockKey, LossReason};
use leasehold_agent::kind_name;
use rustix::process::Signal;

use crate::duration::spoken;
use crate::wording;

/// The command line, a URL or a key makes no sense (`EX_USAGE`).
pub(crate) const USAGE: u8 = 64;
/// The store could not be reached, or gave no answer (`EX_UNAVAILABLE`).
pub(crate) const UNAVAILABLE: u8 = 69;
/// The operating system or this program failed (`EX_SOFTWARE`).
pub(crate) const SYSTEM: u8 = 70;
/// Another holder kept the lock for the whole wait (`EX_TEMPFAIL`).
pub(crate) const CONFLICT: u8 = 75;
/// The lock was lost while the command ran (`EX_PROTOCOL`, which no program uses).
pub(crate) const LOST: u8 = 76;
/// Permission, authentication or configuration (`EX_CONFIG`).
pub(crate) const CONFIG: u8 = 78;
/// The command exists and cannot be executed; the same code as that of shells.
pub(crate) const NOT_EXECUTABLE: u8 = 126;
/// There is no such command; the same code as that of shells.
pub(crate) const NOT_FOUND: u8 = 127;

// The exit codes that a user may choose. A doc comment here would be the help of the command that takes them.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct Codes {
    /// Exit with N if the lock was not acquired in time; with 0 there is no message either
    #[arg(short = 'E', long = "conflict-exit-code", value_name = "N", default_value_t = CONFLICT)]
    pub(crate) conflict: u8,

    /// Exit with N if the lock was lost while the command ran
    #[arg(long = "lost-exit-code", value_name = "N", default_value_t = LOST)]
    pub(crate) lost: u8,

    /// Exit with N if the store could not be reached
    #[arg(long = "unavailable-exit-code", value_name = "N", default_value_t = UNAVAILABLE)]
    pub(crate) unavailable: u8,
}

impl Default for Codes {
    fn default() -> Self {
        Self { conflict: CONFLICT, lost: LOST, unavailable: UNAVAILABLE }
    }
}

impl Codes {
    /// The exit code for an error of the store. No other function maps errors to codes.
    pub(crate) fn of(self, kind: ErrorKind) -> u8 {
        match kind {
            ErrorKind::InvalidKey | ErrorKind::InvalidOptions => USAGE,
            ErrorKind::Unsupported | ErrorKind::Backend => CONFIG,
            ErrorKind::TimedOut => self.conflict,
            ErrorKind::Lost(_) => self.lost,
            ErrorKind::Unavailable | ErrorKind::Indeterminate => self.unavailable,
            _ => SYSTEM,
        }
    }
}

/// Why this program ends without, or before, the command's own exit code.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The command line or the environment makes no sense.
    Usage(String),
    /// The store refused, or could not be reached.
    Store(Error),
    /// Another holder kept the lock for the whole wait.
    Busy { key: LockKey, waited: Duration, holders: Option<Holders> },
    /// The lock was lost before the command could be started.
    LostBeforeStart { key: LockKey, reason: LossReason },
    /// The command could not be started.
    Command { program: String, cause: io::Error },
    /// The password file could not be read, or is not to be trusted.
    Password { file: String, cause: io::Error },
    /// The agent could not begin, or go on: what it could not do, and why.
    Agent { what: String, cause: io::Error },
    /// A signal came before the command was started.
    Interrupted(Signal),
    /// The operating system refused something that it normally never refuses.
    System(io::Error),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Store(error)
    }
}

impl Failure {
    /// The field `kind` of `--json`, lower case with underscores, and the exit code.
    pub(crate) fn kind_and_code(&self, codes: Codes) -> (&'static str, u8) {
        match self {
            Self::Usage(_) => ("usage", USAGE),
            Self::Store(error) => (kind_name(error.kind()), codes.of(error.kind())),
            Self::Busy { .. } => ("busy", codes.conflict),
            Self::LostBeforeStart { .. } => ("lost", codes.lost),
            Self::Command { cause, .. } if cause.kind() == io::ErrorKind::NotFound => ("command", NOT_FOUND),
            Self::Command { .. } => ("command", NOT_EXECUTABLE),
            Self::Password { .. } => ("password_file", CONFIG),
            Self::Agent { .. } => ("agent", CONFIG),
            Self::Interrupted(signal) => ("interrupted", of_signal(signal.as_raw())),
            Self::System(_) => ("system", SYSTEM),
        }
    }

    /// Advice on what to do about the failure, where there is any.
    pub(crate) fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Store(error) => match error.kind() {
                ErrorKind::Unavailable if error.lock_key().is_some() || error.backend() == Some("file") => None,
                // It asks so itself.
                ErrorKind::Unavailable if self.to_string().contains("is the server running?") => {
                    Some("the address is that of --backend or LEASEHOLD_BACKEND")
                }
                ErrorKind::Unavailable => {
                    Some("is the server up, and is the address right? (--backend or LEASEHOLD_BACKEND)")
                }
                ErrorKind::Indeterminate => {
                    Some("the store did not answer; if it granted the lock, the lock is free again when its lease ends")
                }
                ErrorKind::Unsupported => Some("`leasehold backends` shows what each store can do"),
                _ => None,
            },
            Self::LostBeforeStart { .. } => Some("the command was not started; a longer --ttl may help"),
            _ => None,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Usage(what) => f.write_str(what),
            Self::Store(error) => with_causes(f, error),
            Self::Busy { key, waited, holders } => {
                let key = wording::shown(key.as_str());
                match holders.as_ref().map(wording::holders) {
                    Some(Some(who)) => write!(f, "{key} is held by {who}")?,
                    // It was released since, or its counter is ahead of the store's clock.
                    Some(None) => write!(f, "{key} was not granted, and nobody holds it now")?,
                    None => write!(f, "{key} is held by another holder")?,
                }
                if waited.as_millis() >= 100 { write!(f, "; waited {}", spoken(*waited)) } else { Ok(()) }
            }
            Self::LostBeforeStart { key, reason } => {
                write!(f, "lost {} before the command was started: {reason}", wording::shown(key.as_str()))
            }
            Self::Command { program, cause } => write!(f, "cannot run {}: {cause}", wording::shown(program)),
            Self::Password { file, cause } => {
                write!(f, "cannot take the password from {}: {cause}", wording::shown(file))
            }
            Self::Agent { what, cause } => write!(f, "{what}: {cause}"),
            Self::Interrupted(signal) => write!(f, "interrupted by signal {}", signal.as_raw()),
            Self::System(cause) => write!(f, "the system refused: {cause}"),
        }
    }
}

/// The exit code of a program that a signal ended: 128 + n, the same as that of shells.
pub(crate) fn of_signal(signal: i32) -> u8 {
    u8::try_from(128 + signal).unwrap_or(u8::MAX)
}

/// Prints an error and its causes on one line, each cause once: some drivers print their sources themselves, and some
/// print several lines.
fn with_causes(f: &mut fmt::Formatter<'_>, error: &Error) -> fmt::Result {
    let mut text = in_words(one_line(&error.to_string()));
    for cause in successors(error.source(), |&cause| cause.source()) {
        let next = in_words(one_line(&cause.to_string()));
        if !text.contains(&next) {
            text = format!("{text}: caused by {next}");
        }
    }
    f.write_str(&text)
}

/// The text as a person would say it: a failure of the system as its message, and without what drivers put before it.
fn in_words(mut text: String) -> String {
    // As `io::Error` shows itself to programmers: `Os { code: 111, kind: ConnectionRefused, message: "Connection refused" }`.
    for (begins, told_behind) in [("Os { code: ", "message: \""), ("Custom { kind: ", "error: \"")] {
        while let Some(from) = text.find(begins) {
            let Some(end) = text[from..].find("\" }") else { break };
            let Some(message) = text[from..from + end].find(told_behind) else { break };
            let message = text[from + message + told_behind.len()..from + end].to_lowercase();
            text.replace_range(from..from + end + "\" }".len(), &message);
        }
    }
    text.replace("IO Error: ", "")
}

/// The text without characters that end a line, move a cursor, or change the direction of reading.
fn one_line(text: &str) -> String {
    let does_something = |c: char| !matches!(c, '"' | '\'' | '\\') && c.escape_debug().len() > 1;
    text.split(does_something).map(str::trim).filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn causes_are_told_once_and_on_one_line() {
        let inner = io::Error::other("connection\n\u{1b}\u{7} \u{202e}refused");
        let error = Error::new(ErrorKind::Unavailable, "connect").with_backend("redis-single").caused_by(inner);
        let text = Failure::Store(error).to_string();
        assert_eq!(text, "connect on redis-single: store unavailable: caused by connection refused");
        let told = Error::new(ErrorKind::Unavailable, "connect").detail("no route").caused_by("no route");
        assert_eq!(Failure::Store(told).to_string(), "connect: store unavailable: no route");
    }
}
