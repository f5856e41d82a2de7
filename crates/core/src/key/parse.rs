//! How a text becomes a key: apart from the key itself, because an error names the key that it is about.

use std::convert::Infallible;

use crate::{Error, ErrorKind, LockKey, Result};

impl LockKey {
    /// Checks the length and keeps the key as it is.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidKey`] when it is empty or longer than [`MAX_BYTES`](Self::MAX_BYTES).
    pub fn new(key: impl AsRef<str>) -> Result<Self> {
        let key = key.as_ref();
        match key.len() {
            1..=Self::MAX_BYTES => Ok(Self(key.into())),
            0 => {
                Err(Error::new(ErrorKind::InvalidKey, "check a key")
                    .detail("the key is empty; it takes 1 to 255 bytes"))
            }
            n => Err(Error::new(ErrorKind::InvalidKey, "check a key")
                .detail(format!("the key has {n} bytes; it takes 1 to 255"))),
        }
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

// `IntoLockKey` also takes a `LockKey` itself, whose conversion cannot fail.
impl From<Infallible> for Error {
    fn from(never: Infallible) -> Self {
        match never {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use leasehold_testkit::corpus_of_text;

    #[test]
    fn whatever_the_key_is_it_is_kept_as_it_is_or_refused_and_shown_without_control_characters() {
        corpus_of_text(include_str!("../../corpus/keys.txt"), |text| match LockKey::new(text) {
            Ok(key) => {
                assert_eq!(key.as_str(), text);
                assert!(!key.to_string().chars().any(char::is_control), "{key}");
                assert!((1..=LockKey::MAX_BYTES).contains(&text.len()));
            }
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::InvalidKey);
                assert!(text.is_empty() || text.len() > LockKey::MAX_BYTES);
            }
        });
    }

    #[test]
    fn length_is_counted_in_bytes() {
        assert!(LockKey::new("é".repeat(127)).is_ok());
        let error = LockKey::new("é".repeat(128)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidKey);
        assert_eq!(error.to_string(), "check a key: the key has 256 bytes; it takes 1 to 255");
    }
}
