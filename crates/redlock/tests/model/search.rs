use std::collections::{HashSet, VecDeque};
use std::hash::BuildHasher;

use foldhash::fast::FixedState;

use crate::state::{Rules, State};

/// How many steps it takes to break it, or how many states there are in which it holds.
pub(crate) fn search(rules: Rules) -> Result<usize, usize> {
    // 64 bits stand for a state: eight bytes for each of a hundred million.
    let mut seen: HashSet<u64, FixedState> = HashSet::default();
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
            if seen.insert(FixedState::default().hash_one(next)) {
                queue.push_back((next, steps + 1));
            }
        }
    }
    println!("holds in {} states: {rules:?}", seen.len());
    Ok(seen.len())
}
