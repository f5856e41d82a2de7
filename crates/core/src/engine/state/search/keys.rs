//! Which key something is about.

use super::super::event::{KeyId, RequestId};
use super::key_names::{name_of, number_of_key};
use super::world::{Side, Token, World};
use crate::LockKey;
use crate::clock::Moment;

impl World {
    /// Which key a subscription is for. What the state has forgotten does not matter.
    pub(super) fn listens_to(&self, side: Side, request: RequestId) -> u8 {
        let whole = self.sides[side].keys.iter().filter_map(|(_, slot)| slot.whole());
        let mut known = whole.filter(|key| key.store.subscription.is_request(request));
        known.next().map_or(0, |key| number_of_key(&key.name))
    }

    /// Which key is at a place.
    pub(super) fn name_at(&self, side: Side, place: KeyId) -> Option<LockKey> {
        (0..self.config.keys).map(name_of).find(|name| self.sides[side].keys.known_place(name) == Some(place))
    }

    /// Where it is noted that a process used up its bound of a key.
    pub(super) fn rest(&mut self, side: Side, key: &LockKey) -> &mut Option<Moment> {
        &mut self.rests[side * usize::from(self.config.keys) + usize::from(number_of_key(key))]
    }

    /// Which key a caller comes for.
    pub(super) fn key_of(&self, seat: usize) -> LockKey {
        name_of(self.config.seats[seat].key)
    }

    /// The newest token of a key that was handed out.
    pub(super) fn newest_token(&self, key: u8) -> Token {
        let of_key = self.tokens.iter().filter(|token| self.store.key_of(token.0) == key);
        of_key.max().copied().unwrap_or_default()
    }
}
