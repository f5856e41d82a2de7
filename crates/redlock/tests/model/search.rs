use std::collections::{HashSet, VecDeque};
use std::hash::{BuildHasherDefault, Hash, Hasher};

use crate::state::{Rules, State};

/// How many steps it takes to break it, or how many states there are in which it holds.
pub(crate) fn search(rules: Rules) -> Result<usize, usize> {
    let mut seen: HashSet<u64, BuildHasherDefault<AsItIs>> = HashSet::default();
    let mut queue = VecDeque::from([(State::default(), 0)]);
    let mut next = Vec::new();
    while let Some((state, steps)) = queue.pop_front() {
        state.successors(rules, &mut next);
        for next in next.drain(..) {
            let next = next.canonical();
            if next.is_broken() {
                println!("broken after {} steps, {} states: {rules:?}", steps + 1, seen.len());
                return Err(steps + 1);
            }
            if seen.insert(fingerprint(&next)) {
                queue.push_back((next, steps + 1));
            }
        }
    }
    println!("holds in {} states: {rules:?}", seen.len());
    Ok(seen.len())
}

/// 64 bits that stand for a state: eight bytes for each of a hundred million states.
fn fingerprint(state: &State) -> u64 {
    let mut hasher = Mixed(0);
    state.hash(&mut hasher);
    hasher.finish()
}

struct Mixed(u64);

impl Hasher for Mixed {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u8(*byte);
        }
    }

    fn write_u8(&mut self, byte: u8) {
        self.0 = (self.0.rotate_left(5) ^ u64::from(byte)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    fn write_isize(&mut self, number: isize) {
        self.write_u8(number.to_ne_bytes()[0]);
    }

    fn finish(&self) -> u64 {
        let mixed = (self.0 ^ (self.0 >> 31)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed ^ (mixed >> 29)
    }
}

/// The hash of a fingerprint.
#[derive(Default)]
struct AsItIs(u64);

impl Hasher for AsItIs {
    fn write(&mut self, _: &[u8]) {
        unreachable!("a fingerprint is one number");
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = number;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}
