//! Which number an attempt proposes, and which one it gets: decisions without I/O, which the model runs too.
//!
//! Numbers and clocks are epochs: 1/16 ms since 1970.

use crate::majority::majority;

/// One second.
pub(crate) const SECOND: u64 = 16_000;

/// What a node that granted says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Told {
    /// The clock of the node.
    pub(crate) clock: u64,
    /// The node takes only numbers above this one.
    pub(crate) floor: u64,
    /// The number that the node has written for the owner.
    pub(crate) number: Option<u64>,
}

/// What becomes of an attempt that a majority granted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Decision {
    /// A majority has this number: it is won in one round.
    Won(u64),
    /// The nodes that granted are asked to write this number, if it is at most so far ahead of their clocks.
    Write { number: u64, ahead: u64 },
    /// The next number is ahead of the clocks of a majority, which will be there soon.
    Early,
}

/// What to propose by these clocks, of some or all of the `nodes`: the smallest of them, so that every node can take it. The
/// clocks that are more than a second behind those of a majority do not count. `None`: too few clocks are known.
pub(crate) fn proposal(nodes: usize, clocks: impl IntoIterator<Item = u64>) -> Option<u64> {
    let clocks: Vec<u64> = clocks.into_iter().collect();
    let least = of_a_majority(majority(nodes), clocks.iter().copied())?.saturating_sub(SECOND);
    clocks.into_iter().filter(|clock| *clock >= least).min()
}

/// The number that most nodes have written, and how many. They have several where a claim is made again: what the first one
/// won is on a majority.
pub(crate) fn most_written(told: &[Told]) -> Option<(u64, usize)> {
    let having = |number| told.iter().filter(|told| told.number == Some(number)).count();
    told.iter().filter_map(|told| told.number).map(|number| (number, having(number))).max_by_key(|(_, nodes)| *nodes)
}

/// What the clocks of a majority show at least, if there are so many.
fn of_a_majority(majority: usize, clocks: impl Iterator<Item = u64>) -> Option<u64> {
    let mut clocks: Vec<u64> = clocks.collect();
    clocks.sort_unstable_by(|a, b| b.cmp(a));
    clocks.get(majority - 1).copied()
}

/// Decides by what nodes that granted say, at least a majority of the `nodes`.
///
/// A number that a majority has written is above all that a majority had written before. Nobody else can have it, because
/// each node takes a number only above its own, and two majorities have a node in common.
pub(crate) fn decide(nodes: usize, told: &[Told]) -> Decision {
    let majority = majority(nodes);
    if let Some((number, nodes)) = most_written(told)
        && nodes >= majority
    {
        return Decision::Won(number);
    }
    let written = told.iter().filter_map(|told| told.number).max();
    // The least number that a majority of them can take.
    let needs = |told: &Told| told.number.unwrap_or(told.floor + 1);
    let mut needed: Vec<u64> = told.iter().map(needs).collect();
    needed.sort_unstable();
    let least = needed.get(majority - 1).copied().unwrap_or(u64::MAX);
    let latest = proposal(nodes, told.iter().map(|told| told.clock)).unwrap_or_default();
    let number = written.filter(|number| *number >= least).unwrap_or(least.max(latest));
    // The clock that a majority of those who can take it has reached.
    let takers = told.iter().filter(|told| needs(told) <= number);
    let clock = of_a_majority(majority, takers.map(|told| told.clock)).unwrap_or_default();
    match number.saturating_sub(clock) {
        0 => Decision::Write { number, ahead: 0 },
        1..=SECOND => Decision::Early,
        // The clocks were set back, and a key is not shut for so long.
        ahead => Decision::Write { number, ahead },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: u64 = 28_000_000_000_000;

    fn told(clock: u64, floor: u64, number: Option<u64>) -> Told {
        Told { clock, floor, number }
    }

    #[test]
    fn the_smallest_clock_is_proposed_that_is_not_a_second_behind_a_majority() {
        for (clocks, expected) in [
            (&[NOW, NOW + 5, NOW + 9, NOW + 7, NOW + 8][..], Some(NOW)),
            (&[NOW, NOW + 48_000, NOW + 48_100, NOW - 48_000, NOW + 9], Some(NOW)),
            (&[NOW - 48_000, NOW + 48_000, NOW + 9], Some(NOW - 48_000)),
            (&[NOW, NOW + 1], None),
        ] {
            assert_eq!(proposal(5, clocks.iter().copied()), expected, "{clocks:?}");
        }
    }

    #[test]
    fn a_number_ahead_of_the_clocks_comes_soon_and_after_clocks_were_set_back_at_once() {
        let at = |floor| told(NOW, floor, None);
        assert_eq!(decide(3, &[at(NOW), at(7)]), Decision::Early);
        assert_eq!(decide(3, &[at(NOW + SECOND - 1), at(7)]), Decision::Early);
        let number = NOW + SECOND + 1;
        assert_eq!(decide(3, &[at(number - 1), at(7)]), Decision::Write { number, ahead: SECOND + 1 });
        // Where clocks are seconds apart, no number suits a majority as soon as they are set up.
        let apart = [0, 48_000, 96_000].map(|by| told(NOW + by, NOW + by - 1, None));
        assert!(matches!(decide(5, &apart), Decision::Write { ahead: 96_000, .. }), "{:?}", decide(5, &apart));
    }
}
