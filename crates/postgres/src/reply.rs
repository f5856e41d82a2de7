//! What the functions of the schema answer.

use std::time::Duration;

use leasehold_core::{Error, ErrorKind, LeaseStatus, Result};
use tokio_postgres::Row;
use tokio_postgres::types::FromSql;

/// A column of an answer.
///
/// # Errors
/// [`ErrorKind::Backend`] if it is not what the schema of this version has there.
pub(crate) fn column<'r, T: FromSql<'r>>(row: &'r Row, index: usize, operation: &'static str) -> Result<T> {
    row.try_get(index).map_err(|why| odd(operation).caused_by(why))
}

/// What became of a lease. `None`: its row was left out, for another session has it locked.
pub(crate) fn status(row: &Row, operation: &'static str) -> Result<Option<LeaseStatus>> {
    match column(row, 0, operation)? {
        None => Ok(None),
        Some(0) => Ok(Some(LeaseStatus::NotHeld)),
        Some(1) => Ok(Some(LeaseStatus::Held)),
        Some(2) => Ok(Some(LeaseStatus::ForceReleased)),
        Some(_) => Err(odd(operation)),
    }
}

/// The answer to one request that was sent alone, so that its row was waited for.
pub(crate) fn only<T>(mut answers: Vec<Option<Result<T>>>, operation: &'static str) -> Result<T> {
    answers.pop().flatten().unwrap_or_else(|| Err(odd(operation)))
}

/// An epoch, which is never negative.
pub(crate) fn epoch(number: i64, operation: &'static str) -> Result<u64> {
    u64::try_from(number).map_err(|_| odd(operation))
}

/// A lease in microseconds, as a parameter.
pub(crate) fn micros(ttl: Duration) -> i64 {
    i64::try_from(ttl.as_micros()).unwrap_or(i64::MAX)
}

/// The error for an answer that no function of the schema gives.
pub(crate) fn odd(operation: &'static str) -> Error {
    Error::new(ErrorKind::Backend, operation).detail("the schema answers otherwise than that of this version")
}
