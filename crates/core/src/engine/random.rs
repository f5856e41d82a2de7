//! The randomness of the engine: owner ids, and pauses with jitter.

use std::time::Duration;

use super::state::Randomness;
use crate::clock::Moment;
use crate::random::fill;
use crate::{OwnerId, jittered};

/// Random numbers of which no test can tell the next.
pub(crate) struct SystemRandom {
    owners: OwnerIds,
}

/// Owner ids from the randomness of the operating system, several with one system call while they are used up quickly.
///
/// Whoever copies the process copies those that are left: by a fork, or by starting several virtual machines from one
/// snapshot. Two copies that claim with one owner id would both be granted the key, because the store takes the second claim
/// for a repetition of the first. So what is left is dropped after a millisecond. An id that was drawn so shortly before the
/// copy was made could as well have been on its way to the store, and be sent by both.
#[derive(Clone)]
struct OwnerIds {
    left: Vec<OwnerId>,
    drawn_at: Moment,
    /// How many were drawn the last time.
    drawn: usize,
}

/// How long owner ids may be used after they were drawn.
const FRESH: Duration = Duration::from_millis(1);
/// The largest number of owner ids that are drawn together.
const MOST: usize = 64;

impl OwnerIds {
    fn new() -> Self {
        Self { left: Vec::new(), drawn_at: Moment::default(), drawn: 1 }
    }

    fn next(&mut self, now: Moment) -> OwnerId {
        let fresh = now.since(self.drawn_at) < FRESH;
        if let Some(owner) = self.left.pop().filter(|_| fresh) {
            return owner;
        }
        self.left.clear();
        // A process that claims from time to time does not pay for ids that it will not use.
        self.drawn = if fresh { (self.drawn * 2).min(MOST) } else { 1 };
        self.drawn_at = now;
        let mut bytes = [[0; 16]; MOST];
        fill(bytes[..self.drawn].as_flattened_mut());
        let mut drawn = bytes[..self.drawn].iter().map(|bytes| OwnerId::from_random(*bytes));
        let first = drawn.next();
        self.left.extend(drawn);
        first.unwrap_or_else(OwnerId::random)
    }
}

impl SystemRandom {
    pub(crate) fn new() -> Self {
        Self { owners: OwnerIds::new() }
    }
}

impl Randomness for SystemRandom {
    fn owner(&mut self, now: Moment) -> OwnerId {
        self.owners.next(now)
    }

    fn jittered(&mut self, pause: Duration) -> Duration {
        jittered(pause, 0.5..=1.0)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn copies_of_a_process_share_no_owner_id_that_is_a_millisecond_old() {
        let mut ids = OwnerIds::new();
        let (start, mut used) = (Moment::default().plus(FRESH * 9), HashSet::new());
        for _ in 0..3 * MOST {
            assert!(used.insert(*ids.next(start).as_bytes()));
        }
        let mut copy = ids.clone();
        for later in [FRESH, FRESH, FRESH * 3] {
            for ids in [&mut ids, &mut copy] {
                assert!(used.insert(*ids.next(start.plus(later)).as_bytes()), "an owner id came twice");
            }
        }
    }

    #[test]
    fn only_who_claims_often_draws_several_owner_ids_at_once() {
        let (mut ids, mut now) = (OwnerIds::new(), Moment::default());
        for _ in 0..10 {
            now = now.plus(FRESH);
            ids.next(now);
            assert!(ids.left.is_empty());
        }
        for _ in 0..3 * MOST {
            ids.next(now);
        }
        assert!(ids.drawn == MOST && ids.left.len() < MOST);
    }
}
