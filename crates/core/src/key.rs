use std::convert::Infallible;
use std::fmt;
use std::sync::Arc;

use crate::printable::printable;
use crate::{Error, ErrorKind, Result};

/// What is locked: 1 to 255 bytes of UTF-8, compared byte by byte.
///
/// Every such string is legal and distinct: `A` is not `a`, `k` is not `k ` with a trailing space, and quotes,
/// braces, newlines and NUL mean nothing special. Cloning is cheap.
///
/// `Display` is for people: a key is chosen by whoever asks for it, so what would move a terminal's cursor or begin a
/// line in a log is escaped. [`as_str`](Self::as_str) is the key itself.
///
/// ```
/// use leasehold_core::LockKey;
///
/// let key = LockKey::new("invoice/42")?;
/// assert_eq!(key.as_str(), "invoice/42");
/// assert!(LockKey::new("").is_err());
/// assert!(LockKey::new("x".repeat(256)).is_err());
/// # Ok::<(), leasehold_core::Error>(())
/// ```
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LockKey(Arc<str>);

impl LockKey {
    /// The longest key, in bytes.
    pub const MAX_BYTES: usize = 255;

    /// Checks the length and keeps the key as it is.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidKey`] when it is empty or longer than [`MAX_BYTES`](Self::MAX_BYTES).
    pub fn new(key: impl Into<Arc<str>>) -> Result<Self> {
        let key = key.into();
        match key.len() {
            1..=Self::MAX_BYTES => Ok(Self(key)),
            0 => {
                Err(Error::new(ErrorKind::InvalidKey, "check a key")
                    .detail("the key is empty; it takes 1 to 255 bytes"))
            }
            n => Err(Error::new(ErrorKind::InvalidKey, "check a key")
                .detail(format!("the key has {n} bytes; it takes 1 to 255"))),
        }
    }

    /// The key as it was given.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for LockKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

impl fmt::Display for LockKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&printable(&self.0))
    }
}

impl AsRef<str> for LockKey {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl TryFrom<&str> for LockKey {
    type Error = Error;
    fn try_from(key: &str) -> Result<Self> {
        Self::new(key)
    }
}

impl TryFrom<String> for LockKey {
    type Error = Error;
    fn try_from(key: String) -> Result<Self> {
        Self::new(key)
    }
}

impl TryFrom<&String> for LockKey {
    type Error = Error;
    fn try_from(key: &String) -> Result<Self> {
        Self::new(key.as_str())
    }
}

impl From<&LockKey> for LockKey {
    fn from(key: &LockKey) -> Self {
        key.clone()
    }
}

// `K: TryInto<LockKey>` also takes a `LockKey` itself, whose conversion cannot fail.
impl From<Infallible> for Error {
    fn from(never: Infallible) -> Self {
        match never {}
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn every_string_of_1_to_255_bytes_is_a_key_and_stays_as_it_is(key in ".{1,80}") {
            prop_assume!(key.len() <= LockKey::MAX_BYTES);
            let kept = LockKey::new(key.as_str()).unwrap();
            prop_assert_eq!(kept.as_str(), key);
        }
    }

    #[test]
    fn a_key_that_is_shown_does_nothing_to_a_terminal() {
        let key = LockKey::new("a\u{1b}[2J\u{7}\nb").unwrap();
        assert_eq!(key.to_string(), r"a\u{1b}[2J\u{7}\nb");
        assert_eq!(key.as_str(), "a\u{1b}[2J\u{7}\nb");
    }

    #[test]
    fn length_is_counted_in_bytes() {
        assert!(LockKey::new("é".repeat(127)).is_ok());
        let error = LockKey::new("é".repeat(128)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidKey);
        assert_eq!(error.to_string(), "check a key: the key has 256 bytes; it takes 1 to 255");
    }
}
