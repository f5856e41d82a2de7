use std::sync::Arc;

use crate::{Error, ErrorKind, LockKey, Result};

/// A namespace, which keeps the keys of two programs in one store apart: 1 to 64 bytes of UTF-8 without NUL. The default
/// is `leasehold`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Namespace(Arc<str>);

impl Namespace {
    /// The longest name of a row, in bytes: namespace, NUL and key.
    pub const MAX_NAME: u32 = 64 + 1 + 255;

    /// Checks a namespace.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidOptions`] if the namespace is empty, longer than 64 bytes, or contains NUL.
    pub fn new(namespace: &str) -> Result<Self> {
        if (1..=64).contains(&namespace.len()) && !namespace.contains('\0') {
            return Ok(Self(namespace.into()));
        }
        let why = format!("the namespace {namespace:?} is not 1 to 64 bytes without NUL");
        Err(Error::new(ErrorKind::InvalidOptions, "check the namespace").detail(why))
    }

    /// The namespace as it was given.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The name of the row of a key: namespace, NUL, key. Different keys and namespaces have different names, because the
    /// first NUL ends the namespace.
    pub fn name_of(&self, key: &LockKey) -> Vec<u8> {
        self.followed_by(key.as_str().as_bytes())
    }

    /// The key of the row with this name; `None` if the name has another namespace, or is no key.
    pub fn key_of(&self, name: &[u8]) -> Option<LockKey> {
        let key = name.strip_prefix(self.0.as_bytes())?.strip_prefix(b"\0")?;
        LockKey::new(std::str::from_utf8(key).ok()?).ok()
    }

    /// The range of the names of all keys that start with `prefix`: from the first, inclusive, to the second, exclusive.
    pub fn range_of(&self, prefix: &str) -> (Vec<u8>, Vec<u8>) {
        let from = self.followed_by(prefix.as_bytes());
        let mut to = from.clone();
        if let Some(last) = to.last_mut() {
            // It never overflows: the byte 0xFF does not occur in UTF-8.
            *last = last.saturating_add(1);
        }
        (from, to)
    }

    /// The name of a row that need not exist, as the start of a scan.
    pub fn followed_by(&self, rest: &[u8]) -> Vec<u8> {
        [self.0.as_bytes(), b"\0", rest].concat()
    }
}

impl Default for Namespace {
    fn default() -> Self {
        Self("leasehold".into())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use leasehold_testkit::corpus;

    #[test]
    fn a_namespace_and_the_name_of_a_row_have_limits() {
        for bad in ["", "a\0b", &"x".repeat(65)] {
            assert_eq!(Namespace::new(bad).unwrap_err().kind(), ErrorKind::InvalidOptions, "{bad:?}");
        }
        let longest = Namespace::new(&"x".repeat(64)).unwrap().name_of(&LockKey::new("k".repeat(255)).unwrap());
        assert_eq!(longest.len(), Namespace::MAX_NAME as usize);
    }

    #[test]
    fn whatever_the_name_of_a_row_is_it_is_that_of_one_key_or_of_none() {
        let namespace = Namespace::new("leasehold").unwrap();
        corpus(include_str!("../corpus/names.txt"), |name| {
            if let Some(key) = namespace.key_of(name) {
                assert_eq!(namespace.name_of(&key), name);
            }
        });
    }

    proptest! {
        #[test]
        fn names_are_injective_and_reversible(
            one in ("[^\0]{1,9}", ".{1,9}"),
            other in ("[^\0]{1,9}", ".{1,9}"),
            prefix in ".{0,3}",
        ) {
            let name = |(namespace, key): &(String, String)| {
                Namespace::new(namespace).unwrap().name_of(&LockKey::new(key.as_str()).unwrap())
            };
            prop_assert_eq!(one == other, name(&one) == name(&other));
            let namespace = Namespace::new(&one.0).unwrap();
            let found = namespace.key_of(&name(&one));
            prop_assert_eq!(found.as_ref().map(LockKey::as_str), Some(one.1.as_str()));
            let (from, to) = namespace.range_of(&prefix);
            let within = (from..to).contains(&name(&other));
            prop_assert_eq!(within, other.0 == one.0 && other.1.starts_with(&prefix));
        }
    }
}
