use leasehold_core::{Error, ErrorKind};

/// What an error says was being done.
pub(crate) const READING: &str = "read a Redis URL";

pub(crate) fn invalid(detail: impl Into<String>) -> Error {
    Error::new(ErrorKind::InvalidOptions, READING).detail(detail)
}
