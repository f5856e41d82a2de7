use leasehold_core::{LockKey, Mode, Namespace, OwnerId};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

use crate::proto::{Range, starting_with};

/// The names of etcd's keys in one namespace, `leasehold/NAMESPACE/…`. Namespaces and keys are percent-encoded, so that none of them
/// contains a `/`, and a prefix of a key stays a prefix.
#[derive(Clone, Debug)]
pub(crate) struct Names {
    /// With what all names begin.
    pub(crate) root: String,
}

/// What is written as it is: letters, digits, and these.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

impl Names {
    pub(crate) fn new(namespace: &Namespace) -> Self {
        Self { root: format!("leasehold/{}/", utf8_percent_encode(namespace.as_str(), ENCODED)) }
    }

    /// All that is in the namespace.
    pub(crate) fn all(&self) -> Range {
        starting_with(self.root.as_str())
    }

    /// From where epochs are counted.
    pub(crate) fn base(&self) -> Vec<u8> {
        format!("{}base", self.root).into_bytes()
    }

    /// All that the store has of a key: its line.
    pub(crate) fn line(&self, key: &LockKey) -> Range {
        starting_with(self.of_key(key))
    }

    /// The writers in the line of a key.
    pub(crate) fn writers(&self, key: &LockKey) -> Range {
        starting_with(self.of_key(key) + "w/")
    }

    /// One place in the line of a key.
    pub(crate) fn entry(&self, key: &LockKey, mode: Mode, place: OwnerId) -> Vec<u8> {
        let mode = if mode == Mode::Exclusive { 'w' } else { 'r' };
        format!("{}{mode}/{}", self.of_key(key), place.to_hex()).into_bytes()
    }

    /// That an owner was released by force.
    pub(crate) fn forced(&self, key: &LockKey, owner: OwnerId) -> Vec<u8> {
        format!("{}forced/{}/{}", self.root, utf8_percent_encode(key.as_str(), ENCODED), owner.to_hex()).into_bytes()
    }

    /// The lines of all keys that start with `prefix`, from behind that of the key `after` on.
    pub(crate) fn lines(&self, prefix: &str, after: Option<&str>) -> Range {
        let held = format!("{}held/", self.root);
        let (mut from, to) = starting_with(format!("{held}{}", utf8_percent_encode(prefix, ENCODED)));
        if let Some(after) = after {
            // Behind the `/` that ends the name of the key.
            from = from.max(format!("{held}{}0", utf8_percent_encode(after, ENCODED)).into_bytes());
        }
        (from, to)
    }

    /// Key, mode and place of an entry. `None`: this is not the name of one.
    pub(crate) fn read(&self, name: &[u8]) -> Option<(LockKey, Mode, OwnerId)> {
        let rest = std::str::from_utf8(name).ok()?.strip_prefix(&self.root)?.strip_prefix("held/")?;
        let (key, rest) = rest.split_once('/')?;
        let (mode, owner) = rest.split_once('/')?;
        let mode = match mode {
            "w" => Mode::Exclusive,
            "r" => Mode::Shared,
            _ => return None,
        };
        let key = LockKey::new(percent_decode_str(key).decode_utf8().ok()?).ok()?;
        Some((key, mode, OwnerId::parse_hex(owner)?))
    }

    fn of_key(&self, key: &LockKey) -> String {
        format!("{}held/{}/", self.root, utf8_percent_encode(key.as_str(), ENCODED))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_found_by_prefix_and_behind_a_key() {
        let names = Names::new(&Namespace::default());
        let name = |key: &str| names.entry(&LockKey::new(key).unwrap(), Mode::Exclusive, OwnerId::random());
        let is_listed = |key: &str, prefix: &str, after: Option<&str>| {
            let (from, to) = names.lines(prefix, after);
            (from..to).contains(&name(key))
        };
        assert!(is_listed("ab", "a", None) && is_listed("a", "", None) && is_listed("a/é", "a/", None));
        assert!(!is_listed("b", "a", None) && !is_listed("a", "ab", None));
        assert!(is_listed("ab", "a", Some("aa")) && !is_listed("aa", "a", Some("aa")));
        // In the order of etcd's keys, in which `%` is before `/`, each key is on one side of each other key.
        assert!(!is_listed("aa/1", "a", Some("aa")) && is_listed("aa", "a", Some("aa/1")));
    }
}
