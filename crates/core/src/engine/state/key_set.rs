//! A set of keys, as a bit for each.

use super::event::KeyId;

/// The keys of which an engine has had something. It may have nothing of them by now.
#[derive(Clone, Debug, Default)]
pub(super) struct KeySet(Vec<u64>);

impl KeySet {
    pub(super) fn add(&mut self, place: KeyId) {
        let place = place.index();
        if self.0.len() <= place / 64 {
            self.0.resize(place / 64 + 1, 0);
        }
        self.0[place / 64] |= 1 << (place % 64);
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = KeyId> {
        let some = (0..).zip(&self.0).filter(|(_, bits)| **bits != 0);
        some.flat_map(|(word, bits)| {
            (0..64).filter(move |bit| bits >> bit & 1 == 1).map(move |bit| KeyId(word * 64 + bit))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_known_in_any_order_and_take_no_more_room_than_up_to_the_last() {
        let mut places = KeySet::default();
        for place in [5, 64, 200, 6, 5] {
            places.add(KeyId(place));
        }
        assert_eq!(places.iter().collect::<Vec<_>>(), [5, 6, 64, 200].map(KeyId));
        assert_eq!(places.0.len(), 4);
    }
}
