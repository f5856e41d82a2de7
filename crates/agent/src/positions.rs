//! Which claim is the newest for a position in the queue of a store. A connection can end while its process lives, as when a runtime
//! ends: then nobody hears of what its claims are granted, unless they were sent again on another connection.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use leasehold_core::{Claim, LockKey, OwnerId};
use tokio::time::Instant;

/// How long it is known that a position was given up: longer than the release of it is under way.
const KNOWN: Duration = Duration::from_secs(60);

/// The claims that wait, of all connections.
#[derive(Debug, Default)]
pub(crate) struct Positions(Mutex<Newest>);

#[derive(Debug, Default)]
struct Newest {
    last: u64,
    claims: HashMap<(LockKey, OwnerId), State>,
}

#[derive(Debug)]
enum State {
    Waits(u64),
    GivenUp(Instant),
}

/// A claim that waits, until this is dropped.
#[derive(Debug)]
pub(crate) struct Position<'a> {
    all: &'a Positions,
    of: (LockKey, OwnerId),
    number: u64,
}

impl Positions {
    /// For a claim that is sent, maybe again. `None` if the position was given up: a release of it may be under way, which would end
    /// what this claim is granted.
    pub(crate) fn take(&self, claim: &Claim) -> Option<Position<'_>> {
        let of = (claim.key.clone(), claim.owner);
        let mut newest = self.newest();
        if let Some(State::GivenUp(_)) = newest.claims.get(&of) {
            return None;
        }
        newest.last += 1;
        let number = newest.last;
        newest.claims.insert(of.clone(), State::Waits(number));
        Some(Position { all: self, of, number })
    }

    fn newest(&self) -> MutexGuard<'_, Newest> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Position<'_> {
    /// Gives the position up, unless the claim was sent again meanwhile. Whether it is to be released.
    pub(crate) fn give_up(self) -> bool {
        let (now, mut newest) = (Instant::now(), self.all.newest());
        newest.claims.retain(|_, state| !matches!(state, State::GivenUp(since) if *since + KNOWN < now));
        let is_newest = self.is_newest(&newest);
        if is_newest {
            newest.claims.insert(self.of.clone(), State::GivenUp(now));
        }
        is_newest
    }

    fn is_newest(&self, newest: &Newest) -> bool {
        matches!(newest.claims.get(&self.of), Some(State::Waits(number)) if *number == self.number)
    }
}

impl Drop for Position<'_> {
    fn drop(&mut self) {
        let mut newest = self.all.newest();
        if self.is_newest(&newest) {
            newest.claims.remove(&self.of);
        }
    }
}

#[cfg(test)]
mod tests {
    use leasehold_core::Mode;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_claim_that_was_sent_again_keeps_its_position_and_one_that_was_given_up_gets_none() {
        let positions = Positions::default();
        let claim = Claim::new(&LockKey::new("k").unwrap(), Mode::Exclusive, Duration::from_secs(1));
        let take = || positions.take(&claim);
        let (before, again) = (take().unwrap(), take().unwrap());
        assert!(!before.give_up());
        assert!(again.give_up());
        assert!(take().is_none());
        tokio::time::advance(KNOWN * 2).await;
        let another = Claim { owner: OwnerId::random(), ..claim.clone() };
        assert!(positions.take(&another).unwrap().give_up());
        drop(take().unwrap());
        assert_eq!(positions.newest().claims.len(), 1, "of those that end nothing stays");
    }
}
