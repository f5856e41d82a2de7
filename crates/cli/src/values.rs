//! What several commands take from the command line.
#![allow(clippy::doc_markdown, reason = "these comments are the help texts, which are plain text")]

use std::ops::RangeInclusive;
use std::time::Duration;

use clap::Args;
use leasehold::{LockKey, LockOptions, Wait};

use crate::duration;
use crate::wording::default_label;

// What others are shown of a lock. A doc comment here would be the help of each command that takes them.
#[derive(Args, Debug)]
#[group(requires = "key")]
pub(crate) struct Texts {
    /// Why you lock; shown to those who wait for the lock or inspect it
    #[arg(long, value_name = "TEXT")]
    pub(crate) reason: Option<String>,

    /// Who you are; shown beside the reason (default: user@host pid N)
    #[arg(long, value_name = "TEXT")]
    pub(crate) label: Option<String>,
}

impl Texts {
    /// The options with these texts, and with another reason if none was given.
    pub(crate) fn beside(&self, options: LockOptions, reason: Option<String>) -> LockOptions {
        let options = options.label(self.label.clone().unwrap_or_else(default_label));
        match self.reason.clone().or(reason) {
            Some(reason) => options.reason(reason),
            None => options,
        }
    }
}

pub(crate) fn key(text: &str) -> Result<LockKey, String> {
    LockKey::new(text).map_err(|_| format!("it takes 1 to {} bytes, and this has {}", LockKey::MAX_BYTES, text.len()))
}

/// Reads a duration in this range, or refuses it with these words.
pub(crate) fn within(text: &str, range: RangeInclusive<Duration>, why: &str) -> Result<Duration, String> {
    let duration = duration::parse(text)?;
    if range.contains(&duration) { Ok(duration) } else { Err(why.to_owned()) }
}

pub(crate) fn lease(text: &str) -> Result<Duration, String> {
    within(text, LockOptions::MIN_TTL..=LockOptions::MAX_TTL, "a lease takes 10ms to 24h")
}

pub(crate) fn period(text: &str) -> Result<Duration, String> {
    within(text, Duration::from_secs(1)..=LockOptions::MAX_TTL, "it takes 1s to 24h")
}

/// How long a program waits that may name a limit, or that it does not wait.
pub(crate) fn patience(nonblock: bool, limit: Option<Duration>) -> Wait {
    match limit {
        _ if nonblock => Wait::Never,
        Some(limit) => Wait::UpTo(limit),
        None => Wait::Forever,
    }
}
