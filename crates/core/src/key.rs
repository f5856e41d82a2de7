mod parse;

use std::fmt;

use ecow::EcoString;

use crate::printable::printable;

/// What is locked: 1 to 255 bytes of UTF-8, compared byte by byte.
///
/// Every such string is legal and distinct: `A` is not `a`, `k` is not `k ` with a trailing space, and quotes,
/// braces, newlines and NUL mean nothing special. Cloning is cheap, and a key of up to 15 bytes takes no memory of its own.
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
pub struct LockKey(EcoString);

impl LockKey {
    /// The longest key, in bytes.
    pub const MAX_BYTES: usize = 255;

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

impl From<&LockKey> for LockKey {
    fn from(key: &LockKey) -> Self {
        key.clone()
    }
}
