use std::collections::HashSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use leasehold_core::{Attempt, Result};

/// The keys that the last claim of this process found busy, so that the next claim of such a key is a poll.
#[derive(Debug, Default)]
pub(super) struct BusyKeys(Mutex<HashSet<Vec<u8>>>);

/// The most keys that are remembered. If there are more, all are forgotten, and some polls join others.
const MOST: usize = 1_024;

impl BusyKeys {
    /// Whether a claim of the key with this name is a poll.
    pub(super) fn has(&self, name: &[u8]) -> bool {
        self.names().contains(name)
    }

    /// Notes what became of a claim.
    pub(super) fn note(&self, name: &[u8], attempt: &Result<Attempt>) {
        let mut names = self.names();
        if !matches!(attempt, Ok(Attempt::Busy { .. })) {
            names.remove(name);
        } else if !names.contains(name) {
            if names.len() >= MOST {
                names.clear();
            }
            names.insert(name.to_vec());
        }
    }

    fn names(&self) -> MutexGuard<'_, HashSet<Vec<u8>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BUSY: Result<Attempt> = Ok(Attempt::Busy { retry_in: None });

    #[test]
    fn a_key_is_busy_from_a_refusal_to_a_grant() {
        let keys = BusyKeys::default();
        keys.note(b"k", &BUSY);
        assert!(keys.has(b"k") && !keys.has(b"other"));
        keys.note(b"other", &BUSY);
        assert!(keys.has(b"k") && keys.has(b"other"));
        keys.note(b"k", &Ok(Attempt::Granted { epoch: Some(1) }));
        assert!(!keys.has(b"k"));
    }

    #[test]
    fn keys_that_nobody_asks_for_again_do_not_pile_up() {
        let keys = BusyKeys::default();
        for number in 0..10 * MOST {
            keys.note(&number.to_be_bytes(), &BUSY);
        }
        assert!(keys.names().len() <= MOST);
    }
}
