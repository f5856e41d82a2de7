use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use leasehold_core::clock::Moment;
use leasehold_core::{Attempt, Claim, Clock, LockKey, Mode};

/// Who asks again and again: a writer that waits leaves a mark that holds readers back, a single try leaves none.
///
/// The engine makes every attempt with an owner of its own, so waiting shows in that the same key was asked for in the
/// same mode, and refused, a moment ago.
#[derive(Debug, Default)]
pub(crate) struct Waiting {
    refused: Mutex<HashMap<(LockKey, Mode), Moment>>,
    clock: Clock,
}

/// Longer than the engine pauses between two attempts.
const A_MOMENT: Duration = Duration::from_millis(300);

/// Beyond as many keys, those that were given up are forgotten.
const MANY: usize = 1000;

impl Waiting {
    pub(crate) fn asked_before(&self, key: &LockKey, mode: Mode) -> bool {
        let now = self.clock.now();
        self.refused().get(&(key.clone(), mode)).is_some_and(|then| now.since(*then) < A_MOMENT)
    }

    pub(crate) fn answered(&self, claim: &Claim, attempt: Attempt) {
        let now = self.clock.now();
        let place = (claim.key.clone(), claim.mode);
        let mut refused = self.refused();
        match attempt {
            Attempt::Granted { .. } => drop(refused.remove(&place)),
            Attempt::Busy { .. } | Attempt::Queued { .. } => {
                if refused.len() >= MANY {
                    refused.retain(|_, then| now.since(*then) < A_MOMENT);
                }
                refused.insert(place, now);
            }
        }
    }

    fn refused(&self) -> MutexGuard<'_, HashMap<(LockKey, Mode), Moment>> {
        self.refused.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
