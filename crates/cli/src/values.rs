//! Values of the command line that are more than a text.

use std::time::Duration;

use leasehold::{LockKey, LockOptions, Wait};

use crate::duration;

pub(crate) fn key(text: &str) -> Result<LockKey, String> {
    LockKey::new(text).map_err(|_| format!("it takes 1 to {} bytes, and this has {}", LockKey::MAX_BYTES, text.len()))
}

pub(crate) fn lease(text: &str) -> Result<Duration, String> {
    let ttl = duration::parse(text)?;
    if (LockOptions::MIN_TTL..=LockOptions::MAX_TTL).contains(&ttl) {
        Ok(ttl)
    } else {
        Err("a lease takes 10ms to 24h".to_owned())
    }
}

pub(crate) fn period(text: &str) -> Result<Duration, String> {
    let period = duration::parse(text)?;
    let taken = (Duration::from_secs(1)..=LockOptions::MAX_TTL).contains(&period);
    if taken { Ok(period) } else { Err("it takes 1s to 24h".to_owned()) }
}

/// How long a program waits that may name a limit, or that it does not wait.
pub(crate) fn patience(nonblock: bool, limit: Option<Duration>) -> Wait {
    match limit {
        _ if nonblock => Wait::Never,
        Some(limit) => Wait::UpTo(limit),
        None => Wait::Forever,
    }
}
