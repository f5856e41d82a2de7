use std::collections::HashSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The rows that the last operation of this process did not get, so that the next one on such a row goes alone: all of a batch
/// would wait for it.
#[derive(Debug, Default)]
pub(crate) struct BusyRows(Mutex<HashSet<Vec<u8>>>);

/// The most rows that are remembered. If there are more, all are forgotten, and some operations join others.
const MOST: usize = 1_024;

impl BusyRows {
    pub(crate) fn has(&self, name: &[u8]) -> bool {
        self.names().contains(name)
    }

    /// Notes whether an operation got its row.
    pub(crate) fn note(&self, name: &[u8], is_busy: bool) {
        let mut names = self.names();
        if !is_busy {
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

    #[test]
    fn rows_that_nobody_asks_for_again_do_not_pile_up() {
        let rows = BusyRows::default();
        for number in 0..10 * MOST {
            rows.note(&number.to_be_bytes(), true);
        }
        assert!(rows.names().len() <= MOST);
    }
}
