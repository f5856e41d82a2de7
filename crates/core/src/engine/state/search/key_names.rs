//! The names of the keys, and their numbers.

use crate::LockKey;

pub(super) fn name_of(key: u8) -> LockKey {
    thread_local!(static KEYS: [LockKey; 3] = ["k", "l", "m"].map(|name| LockKey::new(name).unwrap()));
    KEYS.with(|keys| keys[usize::from(key)].clone())
}

pub(super) fn number_of_key(key: &LockKey) -> u8 {
    key.as_str().as_bytes()[0] - b'k'
}
