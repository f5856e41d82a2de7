//! All keys. One that is only held takes little room: nothing is stored for it but its lease.

use std::borrow::Cow;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::mem::replace;

use hashbrown::HashTable;
use hashbrown::hash_table::Entry;

use super::event::{KeyId, LeaseCell, Member};
use super::held::HeldLease;
use super::in_store::InStore;
use super::key::Key;
use super::lease::Lease;
use super::queue::Queue;
use super::waiter::LastAnswer;
use crate::LockKey;
use crate::clock::Moment;

/// All keys of which something is known.
///
/// A key that is only held takes little room, because there may be a hundred thousand of them. It is expanded to a whole
/// `Key` when something happens to it.
#[derive(Clone, Debug)]
pub(super) struct Keys<W, L> {
    /// The positions by name. The names are in the entries.
    places: HashTable<KeyId>,
    hasher: RandomState,
    slots: Vec<KeyEntry<W, L>>,
    /// Positions that are free.
    free: Vec<KeyId>,
    /// Unused `Key`s, with the capacity of their lists.
    spare: Vec<BoxedKey<W, L>>,
}

type BoxedKey<W, L> = Box<Key<W, L>>;

/// A key as it is stored. Most keys are only held, and reading them is fastest side by side.
#[derive(Clone, Debug)]
pub(super) enum KeyEntry<W, L> {
    Empty,
    Held(HeldLease<L>),
    Whole(BoxedKey<W, L>),
}

/// The largest number of spare keys: about as many as callers acquire at the same time. A key that is freed instead leaves a
/// hole in memory among those that are held.
const SPARE: usize = 256;
/// The largest capacity of the lists of a spare key.
const ROOM: usize = 64;

impl<W: Clone, L: LeaseCell> Keys<W, L> {
    pub(super) fn new() -> Self {
        Self {
            places: HashTable::new(),
            hasher: RandomState::new(),
            slots: Vec::new(),
            free: Vec::new(),
            spare: Vec::new(),
        }
    }

    pub(super) fn get(&self, name: &LockKey) -> Option<&KeyEntry<W, L>> {
        self.known_place(name).map(|place| &self.slots[place.index()])
    }

    pub(super) fn entry(&self, place: KeyId) -> Option<&KeyEntry<W, L>> {
        self.slots.get(place.index())
    }

    /// Whether the key at this position has anything of the engine.
    pub(super) fn concerns(&self, place: KeyId, member: Member) -> bool {
        match self.slots.get(place.index()) {
            None | Some(KeyEntry::Empty) => false,
            Some(KeyEntry::Held(lease)) => lease.terms().member == member,
            Some(KeyEntry::Whole(key)) => key.concerns(member),
        }
    }

    /// The position of a key, which is added if nothing is known of it.
    pub(super) fn place(&mut self, name: &LockKey) -> KeyId {
        let Self { places, hasher, slots, free, spare } = self;
        let is_it = |place: &KeyId| slots[place.index()].name() == Some(name);
        let hash_of = |place: &KeyId| hasher.hash_one(slots[place.index()].name());
        match places.entry(hasher.hash_one(Some(name)), is_it, hash_of) {
            Entry::Occupied(known) => *known.get(),
            Entry::Vacant(new) => {
                let place = free.pop().unwrap_or_else(|| {
                    KeyId(u32::try_from(slots.len()).unwrap_or_else(|_| unreachable!("they would not fit into memory")))
                });
                new.insert(place);
                let key = KeyEntry::Whole(whole(spare, place, name));
                match slots.get_mut(place.index()) {
                    Some(slot) => *slot = key,
                    None => slots.push(key),
                }
                place
            }
        }
    }

    pub(super) fn known_place(&self, name: &LockKey) -> Option<KeyId> {
        let is_it = |place: &KeyId| self.slots[place.index()].name() == Some(name);
        self.places.find(self.hasher.hash_one(Some(name)), is_it).copied()
    }

    /// Changes a key, and forgets it if nothing is known of it afterwards. `None`: no key is at this position.
    pub(super) fn at<T>(&mut self, place: KeyId, happens: impl FnOnce(&mut Key<W, L>) -> T) -> Option<T> {
        let slot = self.slots.get_mut(place.index())?;
        let mut key = match replace(slot, KeyEntry::Empty) {
            KeyEntry::Empty => return None,
            KeyEntry::Held(held) => {
                let (noted, busy) = (held.noted(), held.is_busy());
                let lease = held.lease();
                let mut key = whole(&mut self.spare, place, lease.cell.key());
                (key.noted, key.store.last_answer) = (noted, busy.then_some(LastAnswer::Busy));
                key.leases.push(lease);
                key
            }
            KeyEntry::Whole(key) => key,
        };
        let result = happens(&mut key);
        if key.is_idle() {
            self.forget(place, &key.name);
        } else if key.is_only_held()
            && let Some(lease) = key.leases.pop()
        {
            match HeldLease::of(lease, key.noted, key.store.last_answer.is_some()) {
                Ok(held) => *slot = KeyEntry::Held(held),
                Err(lease) => {
                    key.leases.push(lease);
                    *slot = KeyEntry::Whole(key);
                    return Some(result);
                }
            }
        } else {
            *slot = KeyEntry::Whole(key);
            return Some(result);
        }
        if self.spare.len() < SPARE && key.room() <= ROOM {
            self.spare.push(key);
        }
        Some(result)
    }

    fn forget(&mut self, place: KeyId, name: &LockKey) {
        if let Ok(known) = self.places.find_entry(self.hasher.hash_one(Some(name)), |known| *known == place) {
            known.remove();
        }
        self.free.push(place);
        if self.places.is_empty() && self.slots.len() > SPARE {
            (self.places, self.slots, self.free) = (HashTable::new(), Vec::new(), Vec::new());
        }
    }

    #[cfg(test)]
    pub(super) fn iter(&self) -> impl Iterator<Item = (KeyId, &KeyEntry<W, L>)> {
        self.places.iter().map(|place| (*place, &self.slots[place.index()]))
    }
}

/// An empty key, with the capacity that its lists may have.
fn whole<W: Clone, L: LeaseCell>(spare: &mut Vec<BoxedKey<W, L>>, place: KeyId, name: &LockKey) -> BoxedKey<W, L> {
    let mut key = spare.pop().unwrap_or_else(|| Box::new(Key::new(name.clone())));
    key.begin_anew(place, name.clone());
    key
}

impl<W: Clone, L: LeaseCell> Key<W, L> {
    /// The entry of this key in the schedule.
    pub(super) fn place(&self) -> (Moment, KeyId) {
        (self.noted, self.id)
    }

    /// Whether nothing is known of the key but one lease, and that it is busy in the store.
    fn is_only_held(&self) -> bool {
        self.leases.len() == 1
            && self.queue.is_empty()
            && self.store.is_settled()
            && !matches!(self.store.last_answer, Some(LastAnswer::Failed(_)))
            && self.store.subscription.is_as_new()
            && self.store.yield_until == Moment::default()
            && self.store.session.is_none()
    }

    /// The capacity of its lists.
    fn room(&self) -> usize {
        let (Queue { waiters, offers, .. }, InStore { claims, releases, .. }) = (&self.queue, &self.store);
        waiters.capacity() + offers.capacity() + claims.capacity() + releases.capacity()
    }

    /// Empties the key for another use, but keeps the capacity of its lists.
    fn begin_anew(&mut self, place: KeyId, key: LockKey) {
        let Self { name, id, queue, leases, store, noted } = self;
        queue.clear();
        leases.clear();
        store.clear();
        (*name, *id, *noted) = (key, place, Moment::NEVER);
    }
}

impl<W: Clone, L: LeaseCell> KeyEntry<W, L> {
    /// The key, if it is not only held.
    pub(super) fn whole(&self) -> Option<&Key<W, L>> {
        match self {
            Self::Whole(key) => Some(key),
            Self::Empty | Self::Held(..) => None,
        }
    }

    pub(super) fn leases(&self) -> Cow<'_, [Lease<L>]> {
        match self {
            Self::Empty => Cow::Borrowed(&[]),
            Self::Held(lease) => Cow::Owned(vec![lease.clone().lease()]),
            Self::Whole(key) => Cow::Borrowed(&key.leases),
        }
    }

    fn name(&self) -> Option<&LockKey> {
        match self {
            Self::Empty => None,
            Self::Held(lease) => Some(lease.name()),
            Self::Whole(key) => Some(&key.name),
        }
    }

    /// The key as a change would see it.
    #[cfg(test)]
    pub(super) fn in_full(&self, place: KeyId) -> Key<W, L> {
        let mut keys = Keys { slots: vec![self.clone()], ..Keys::new() };
        let key = keys.at(KeyId(0), |key| Key { id: place, ..key.clone() });
        key.unwrap_or_else(|| unreachable!("a known key has a slot that is not empty"))
    }
}

#[cfg(all(test, not(leasehold_search)))]
mod tests {
    use super::super::check::LeaseNote;
    use super::*;

    fn name(number: usize) -> LockKey {
        LockKey::new(format!("k{number}")).unwrap_or_else(|_| unreachable!("it is short"))
    }

    #[test]
    fn an_entry_is_no_larger_than_the_lease_in_it() {
        assert_eq!(size_of::<KeyEntry<(), LeaseNote>>(), size_of::<HeldLease<LeaseNote>>());
    }

    #[test]
    fn so_many_keys_are_spare_and_a_place_is_used_again() {
        let mut keys: Keys<(), LeaseNote> = Keys::new();
        // As long as one key is there, the positions of the others are kept, too.
        keys.place(&name(SPARE + 1));
        let places: Vec<_> = (0..=SPARE).map(|number| keys.place(&name(number))).collect();
        for place in &places {
            keys.at(*place, |_| ());
        }
        assert_eq!((keys.spare.len(), keys.places.len(), keys.free.len()), (SPARE, 1, SPARE + 1));
        assert!(places.contains(&keys.place(&name(0))));
        assert_eq!((keys.spare.len(), keys.slots.len()), (SPARE - 1, SPARE + 2));
    }

    #[test]
    fn the_room_of_many_keys_is_given_back_when_none_of_them_is_left() {
        let mut keys: Keys<(), LeaseNote> = Keys::new();
        let places: Vec<_> = (0..=SPARE).map(|number| keys.place(&name(number))).collect();
        for place in &places {
            assert!(keys.at(*place, |_| ()).is_some());
        }
        assert_eq!(keys.slots.capacity() + keys.free.capacity() + keys.places.capacity(), 0);
        // A position from before has no key.
        assert!(!keys.concerns(places[SPARE], Member(1)) && keys.at(places[SPARE], |_| ()).is_none());
    }

    #[test]
    fn a_key_with_room_for_many_callers_is_not_kept_as_a_spare() {
        let enlarge: [fn(&mut Key<(), LeaseNote>); 5] = [
            |key| key.queue.waiters.reserve(ROOM + 1),
            |key| key.queue.offers.reserve(ROOM + 1),
            |key| key.store.claims.reserve(ROOM + 1),
            |key| key.store.releases.reserve(ROOM + 1),
            |key| {
                key.queue.waiters.reserve_exact(ROOM / 2 + 1);
                key.store.claims.reserve_exact(ROOM / 2 + 1);
            },
        ];
        for enlarge in enlarge {
            let mut keys = Keys::new();
            let place = keys.place(&name(0));
            keys.at(place, enlarge);
            assert!(keys.spare.is_empty());
        }
        let mut keys: Keys<(), LeaseNote> = Keys::new();
        let place = keys.place(&name(0));
        keys.at(place, |key| key.store.claims.reserve_exact(ROOM));
        assert_eq!(keys.spare.len(), 1);
    }
}
