//! Which claim is the newest of an owner. A connection can end while its process lives, as when a runtime ends: then nobody hears of
//! what its claims are granted, unless they were sent again on another connection.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use leasehold_core::{GrantRef, LockKey, OwnerId};
use tokio::time::Instant;

/// How long it is known that a position was given up: longer than the release of it is under way.
const KNOWN: Duration = Duration::from_secs(60);

type Of = (LockKey, OwnerId);

/// A connection of an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ClientId(u64);

/// The claims of all connections that were granted nothing yet, as far as their clients know.
#[derive(Clone, Debug, Default)]
pub(crate) struct Positions(Arc<Mutex<Newest>>);

#[derive(Debug, Default)]
struct Newest {
    last: u64,
    claims: HashMap<Of, State>,
    /// The oldest first.
    given_up: VecDeque<(Instant, Of)>,
}

#[derive(Debug, PartialEq, Eq)]
enum State {
    /// The number of the claim, and the client.
    Asks(u64, ClientId),
    GivenUp,
}

/// A claim, until this is dropped.
pub(crate) struct Position<'a> {
    all: &'a Positions,
    of: Of,
    number: u64,
}

impl Positions {
    /// A client that has no position yet.
    pub(crate) fn new_client(&self) -> ClientId {
        let mut newest = self.newest();
        newest.last += 1;
        ClientId(newest.last)
    }

    /// For a claim that is sent, maybe again. `None` if the position was given up: a release of it may be under way, which would end
    /// what this claim is granted.
    pub(crate) fn take(&self, claim: &GrantRef, by: ClientId) -> Option<Position<'_>> {
        let of = (claim.key.clone(), claim.owner);
        let mut newest = self.newest();
        if newest.claims.get(&of) == Some(&State::GivenUp) {
            return None;
        }
        newest.last += 1;
        let number = newest.last;
        newest.claims.insert(of.clone(), State::Asks(number, by));
        Some(Position { all: self, of, number })
    }

    /// The client that asks for a key with this owner id, if there is one that was granted nothing yet as far as it knows.
    pub(crate) fn client_of(&self, key: &LockKey, owner: OwnerId) -> Option<ClientId> {
        match self.newest().claims.get(&(key.clone(), owner)) {
            Some(State::Asks(_, client)) => Some(*client),
            _ => None,
        }
    }

    /// For a renewal, or a client that is told of its grant: it counts on that, so that no connection gives it up from now on. False if
    /// it was given up.
    pub(crate) fn keep(&self, key: &LockKey, owner: OwnerId) -> bool {
        let of = (key.clone(), owner);
        let mut newest = self.newest();
        let is_given_up = newest.claims.get(&of) == Some(&State::GivenUp);
        if !is_given_up {
            newest.claims.remove(&of);
        }
        !is_given_up
    }

    fn newest(&self) -> MutexGuard<'_, Newest> {
        let mut newest = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        while newest.given_up.front().is_some_and(|(since, _)| *since + KNOWN < now) {
            let over = newest.given_up.pop_front();
            over.map(|(_, of)| newest.claims.remove(&of));
        }
        newest
    }
}

impl Position<'_> {
    /// Gives the position up, unless the claim was sent again meanwhile. Whether it is to be released.
    pub(crate) fn give_up(self) -> bool {
        let mut newest = self.all.newest();
        let is_newest = self.is_newest(&newest);
        if is_newest {
            newest.claims.insert(self.of.clone(), State::GivenUp);
            newest.given_up.push_back((Instant::now(), self.of.clone()));
        }
        is_newest
    }

    fn is_newest(&self, newest: &Newest) -> bool {
        matches!(newest.claims.get(&self.of), Some(State::Asks(number, _)) if *number == self.number)
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
    use leasehold_core::{Claim, Mode};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_claim_that_was_sent_again_keeps_its_position_and_one_that_was_given_up_gets_none() {
        let positions = Positions::default();
        let claim = Claim::new(&LockKey::new("k").unwrap(), Mode::Exclusive, Duration::from_secs(1)).grant(None);
        let take = || positions.take(&claim, ClientId(1));
        let (before, again) = (take().unwrap(), positions.take(&claim, ClientId(2)).unwrap());
        assert_eq!(positions.client_of(&claim.key, claim.owner), Some(ClientId(2)));
        assert!(!before.give_up());
        assert!(again.give_up());
        assert_eq!(positions.client_of(&claim.key, claim.owner), None);
        assert!(take().is_none() && !positions.keep(&claim.key, claim.owner));
        tokio::time::advance(KNOWN * 2).await;
        let renewed = take().unwrap();
        assert!(
            positions.keep(&claim.key, claim.owner) && !renewed.give_up(),
            "what is renewed on another connection is kept"
        );
        drop(take().unwrap());
        assert!(positions.newest().claims.is_empty(), "of those that end nothing stays");
    }
}
