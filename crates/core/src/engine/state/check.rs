//! What holds of a state after every step, and what tests of a state give it: cells and owners that are numbered.

use std::collections::HashSet;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use super::event::{Actions, LeaseCell};
use super::in_store::InStore;
use super::key::Key;
use super::pending::PendingClaim;
use super::step::{Batches, Step};
use super::{Randomness, State};
use crate::clock::Moment;
use crate::{GrantRef, LockKey, Mode, OwnerId};

type Found = Result<(), String>;

fn holds(holds: bool, what: &str) -> Found {
    if holds { Ok(()) } else { Err(what.to_owned()) }
}

impl<W: Clone, L: LeaseCell> State<W, L> {
    /// Says what contradicts itself, if anything does.
    pub(crate) fn check(&self, now: Moment) -> Found {
        let keys: Vec<_> = self.keys.iter().map(|(place, slot)| slot.in_full(place)).collect();
        let mut scheduled = HashSet::new();
        for (moment, key) in &self.schedule {
            holds(scheduled.insert(*key), "a key is in the schedule twice")?;
            let noted = keys.iter().find(|known| known.id == *key).map(|key| key.noted);
            holds(noted == Some(*moment), "a key is in the schedule at another moment than it has noted")?;
        }
        let (mut members, mut next_id) = (self.members.clone(), 0);
        for key in &keys {
            holds(!key.is_idle(), "a key is kept of which nothing is to be known")?;
            holds(
                (key.noted != Moment::NEVER) == scheduled.contains(&key.id),
                "a key is not in the schedule that should be",
            )?;
            let (mut out, mut batches, mut owners) = (Actions::new(), Batches::new(), 0);
            let (members, next_id) = (&mut members, &mut next_id);
            let random = &mut TestRandom(&mut owners);
            let step = Step { now, random, members, next_id, out: &mut out, batches: &mut batches };
            holds(key.noted <= key.next_event(&step).max(now), "a key needs attention before the schedule says so")?;
            key.check(now)?;
        }
        for (member, engine) in &self.members {
            let of = |key: &Key<W, L>| {
                let InStore { claims, releases, take_overs, .. } = &key.store;
                let claims = claims.iter().filter(|claim| claim.member == *member && claim.request().is_some());
                let releases =
                    releases.iter().filter(|release| release.member == *member && release.late_pause.is_none());
                let take_overs = take_overs.iter().filter(|pending| pending.member == *member);
                claims.count() + releases.count() + take_overs.count()
            };
            holds(keys.iter().map(of).sum::<usize>() == engine.under_way, "what is under way is not counted")?;
            let known = |key: &Key<W, L>| !key.concerns(*member) || engine.places.iter().any(|place| place == key.id);
            holds(keys.iter().all(known), "an engine does not know of a key of its own")?;
        }
        Ok(())
    }
}

impl<W: Clone, L: LeaseCell> Key<W, L> {
    fn check(&self, now: Moment) -> Found {
        let held: Vec<_> = self.leases.iter().filter(|lease| lease.is_held(now)).collect();
        holds(
            held.iter().all(|lease| {
                let of_one_session = lease.terms.session.is_some() && lease.terms.session == held[0].terms.session;
                held.len() < 2 || !lease.is_exclusive() || (of_one_session && lease.epoch() == held[0].epoch())
            }),
            "an exclusive lease is held beside another",
        )?;
        holds(self.queue.waiters.iter().is_sorted_by(|one, next| one.id < next.id), "the line is not in its order")?;
        holds(
            self.queue.over == self.queue.waiters.iter().filter(|waiter| waiter.is_over).count(),
            "those at their limit are not counted",
        )?;
        let offered = |id| self.queue.offers.iter().filter(|offer| offer.waiter.id == id).count();
        holds(
            self.queue.waiters.iter().chain(&self.queue.asleep).all(|waiter| offered(waiter.id) == 0),
            "a waiter is in the line and served",
        )?;
        holds(
            self.queue.asleep.iter().all(|waiter| self.queue.index(waiter.id).is_none()),
            "a waiter is in the line and asleep",
        )?;
        for offer in &self.queue.offers {
            holds(offered(offer.waiter.id) == 1, "a waiter is served twice")?;
            let lease = self.leases.iter().find(|lease| lease.id == offer.guard.lease && lease.end.is_none());
            let stands = lease.is_some_and(|lease| lease.guards.iter().any(|entry| entry.id == offer.guard.guard));
            holds(stands, "what is offered is on no lease")?;
        }
        for claim in &self.store.claims {
            let waits = claim.for_waiter.is_none_or(|for_waiter| self.queue.index(for_waiter).is_some());
            holds(waits, "a claim is of a waiter that is not in the line")?;
            holds(claim.for_waiter.is_some() || claim.request().is_some(), "a claim is nobody's, and is not given up")?;
            let of_it = |other: &&PendingClaim<W>| other.for_waiter.is_some() && other.for_waiter == claim.for_waiter;
            holds(self.store.claims.iter().filter(of_it).count() < 2, "a waiter asks twice")?;
        }
        for lease in &self.leases {
            holds(!lease.guards.is_empty(), "a lease has no guard")?;
            holds(lease.end.is_none() || lease.is_reentrant() || lease.owes_release, "a lease is kept that ended")?;
            holds(lease.end.is_some() || !lease.owes_release, "a lease that is held is to be given back")?;
            holds(
                lease.is_reentrant() || !lease.is_exclusive() || lease.guards.len() == 1,
                "an exclusive lease has two guards",
            )?;
            let mut numbers: Vec<_> = lease.guards.iter().map(|entry| entry.number).collect();
            numbers.sort_unstable();
            numbers.dedup();
            holds(lease.is_reentrant() || numbers.len() == lease.guards.len(), "two guards have one token")?;
        }
        Ok(())
    }
}

/// The cell of a lease: its number, of which only the order means something, what was granted, and when it was to end at first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LeaseNote {
    pub(super) id: u32,
    pub(super) first: Moment,
    grant: GrantRef,
}

impl LeaseCell for LeaseNote {
    fn new(grant: GrantRef, first: Moment) -> Self {
        static CELLS: AtomicU32 = AtomicU32::new(0);
        Self { id: CELLS.fetch_add(1, Ordering::Relaxed), first, grant }
    }

    fn key(&self) -> &LockKey {
        &self.grant.key
    }

    fn owner(&self) -> OwnerId {
        self.grant.owner
    }

    fn mode(&self) -> Mode {
        self.grant.mode
    }

    fn epoch(&self) -> Option<u64> {
        self.grant.epoch
    }
}

/// Owner ids in the order in which they are asked for, and the longest pauses.
pub(super) struct TestRandom<'n>(pub(super) &'n mut u64);

impl Randomness for TestRandom<'_> {
    fn owner(&mut self, _: Moment) -> OwnerId {
        *self.0 += 1;
        owner(*self.0)
    }

    fn jittered(&mut self, pause: Duration) -> Duration {
        pause
    }
}

pub(super) fn owner(number: u64) -> OwnerId {
    OwnerId::parse_hex(&format!("{number:032x}")).unwrap_or_else(|| unreachable!("these are the digits of one"))
}

pub(super) fn number_of(owner: OwnerId) -> u64 {
    let mut low = [0; 8];
    low.copy_from_slice(&owner.as_bytes()[8..]);
    u64::from_be_bytes(low)
}
