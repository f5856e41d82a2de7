use std::collections::BTreeSet;
use std::time::Duration;

use leasehold_core::jittered;

use crate::answer::{Claimed, NodeHolder};
use crate::error::Failure;
use crate::majority::majority;
use crate::numbers::{Decision, Told, decide, most_written};

/// The answers to the first round, as far as they have come.
#[derive(Debug, Default)]
pub(crate) struct Vote {
    nodes: usize,
    /// The nodes that have not answered yet.
    pub(crate) unanswered: BTreeSet<usize>,
    /// Those of them that are expected to answer in time.
    expected: BTreeSet<usize>,
    /// The nodes that granted.
    pub(crate) granted: Vec<usize>,
    /// What those nodes say of numbers.
    pub(crate) told: Vec<Told>,
    busy: Vec<NodeHolder>,
    pub(crate) failed: Vec<(usize, Failure)>,
}

impl Vote {
    /// A vote of all nodes, of which these are expected to answer in time.
    pub(crate) fn begin(nodes: BTreeSet<usize>, expected: BTreeSet<usize>) -> Self {
        Self { nodes: nodes.len(), unanswered: nodes, expected, ..Self::default() }
    }

    /// Whether the nodes that have not answered yet can still decide the vote, or make a second round needless: until a majority
    /// granted, or a majority answered and no majority can grant any more, or too few nodes are left for either.
    ///
    /// Once a majority has answered and no majority granted, only the expected nodes are waited for: meanwhile the grants
    /// of this attempt are in the way of all other attempts, and theirs in its way.
    pub(crate) fn is_open(&self) -> bool {
        let may_win = self.granted.len() + self.expected.len() >= self.majority();
        let may_be_busy = self.answered() + self.unanswered.len() >= self.majority();
        if self.is_won() { self.lacks_numbers() } else { may_be_busy && (may_win || !self.is_busy()) }
    }

    /// Whether fewer than a majority have one number, and those that are expected may make it one.
    fn lacks_numbers(&self) -> bool {
        let (_, alike) = most_written(&self.told).unwrap_or_default();
        alike < self.majority() && alike + self.expected.len() >= self.majority()
    }

    pub(crate) fn add(&mut self, index: usize, answer: Claimed) {
        self.unanswered.remove(&index);
        self.expected.remove(&index);
        match answer {
            Claimed::Granted(told) => {
                self.granted.push(index);
                self.told.push(told);
            }
            Claimed::Busy(holder) => self.busy.push(holder),
            Claimed::Failed(failure) => self.failed.push((index, failure)),
        }
    }

    fn majority(&self) -> usize {
        majority(self.nodes)
    }

    pub(crate) fn is_won(&self) -> bool {
        self.granted.len() >= self.majority()
    }

    /// The number of an attempt that won the vote.
    pub(crate) fn number(&self) -> Decision {
        decide(self.nodes, &self.told)
    }

    /// How many nodes granted the key or said that it is busy.
    pub(crate) fn answered(&self) -> usize {
        self.granted.len() + self.busy.len()
    }

    /// Whether the vote was lost to other owners and not to silence: a majority of the nodes answered.
    pub(crate) fn is_busy(&self) -> bool {
        self.answered() >= self.majority()
    }

    /// When to try again, after an attempt that `took` so long.
    ///
    /// A lock that is held stands in the way until enough of its leases are over. If nobody can have a majority,
    /// several attempts have split the nodes among them; all give back, so the next one comes soon, but not at the same time.
    pub(crate) fn retry_in(&self, took: Duration) -> Option<Duration> {
        if !self.busy.iter().any(|holder| self.may_hold(&holder.owner)) {
            return Some(jittered_pause(took));
        }
        let mut leases: Vec<Duration> = self.busy.iter().map(|holder| holder.remaining).collect();
        leases.sort_unstable();
        let missing = self.majority().saturating_sub(self.granted.len()).max(1);
        leases.get(missing - 1).copied()
    }

    /// Whether an owner has a majority, or may have it together with the nodes that have not answered. The latter only
    /// if the owner is settled: an attempt gets few of the silent nodes.
    fn may_hold(&self, owner: &str) -> bool {
        let theirs = || self.busy.iter().filter(|holder| holder.owner == owner);
        let silent = self.nodes - self.answered();
        let hidden = if theirs().any(|holder| holder.settled) { silent } else { 0 };
        theirs().count() + hidden >= self.majority()
    }
}

/// A random pause of some round trips, of which one `took` so long; at most 250 ms.
pub(crate) fn jittered_pause(took: Duration) -> Duration {
    jittered(took, 0.5..=8.0).min(Duration::from_millis(250))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node_state::NodeCondition;

    /// Of `X 500`, X is settled; of `x 500`, x may be in the midst of its attempt. `ours` have no number, `ours+` have one.
    fn claimed(index: usize, answer: &str) -> Claimed {
        match answer.split_once(' ') {
            Some((owner, left)) => {
                let remaining = Duration::from_millis(left.parse().unwrap());
                let settled = owner.chars().all(char::is_uppercase);
                Claimed::Busy(NodeHolder { remaining, owner: owner.to_owned(), settled })
            }
            None if answer == "ours" => Claimed::Granted(Told { clock: 9, floor: index as u64, number: None }),
            None if answer == "ours+" => Claimed::Granted(Told { clock: 9, floor: 1, number: Some(8) }),
            None if answer == "ours+9" => Claimed::Granted(Told { clock: 9, floor: 1, number: Some(9) }),
            None => Claimed::Failed(Failure::of(NodeCondition::Reset)),
        }
    }

    /// Counts answers that come in this order; `silent` ones never come, and are waited for all the same.
    fn counted(answers: [&str; 5]) -> Vote {
        counted_of(answers, 0..5).expect("the answers decide it")
    }

    /// Counts answers that come in this order, of which these indices are expected. `None`: the counting does not end.
    fn counted_of(answers: [&str; 5], expected: impl IntoIterator<Item = usize>) -> Option<Vote> {
        let mut vote = Vote::begin((0..answers.len()).collect(), expected.into_iter().collect());
        for (index, answer) in answers.into_iter().enumerate().filter(|(_, answer)| *answer != "silent") {
            if vote.is_open() {
                vote.add(index, claimed(index, answer));
            }
        }
        (!vote.is_open()).then_some(vote)
    }

    #[test]
    fn a_held_key_is_busy_in_whatever_order_the_nodes_say_so() {
        for failed in 0..5 {
            for other in 0..5 {
                let mut answers = ["x 500"; 5];
                answers[failed] = "-";
                answers[other] = "-";
                let vote = counted(answers);
                assert!(!vote.is_won() && vote.is_busy(), "{answers:?}: {vote:?}");
            }
        }
        // Its own leftovers, or a vote that is split.
        for answers in [["-", "x 500", "x 500", "ours", "y 500"], ["ours", "-", "-", "x 500", "x 500"]] {
            assert!(counted(answers).is_busy(), "{answers:?}");
        }
    }

    #[test]
    fn what_is_decided_is_not_waited_for() {
        assert!(counted(["ours", "ours", "ours", "silent", "silent"]).is_won());
        assert!(counted(["x 5", "x 5", "x 5", "silent", "silent"]).is_busy());
        let failed = counted(["-", "-", "-", "silent", "silent"]);
        assert!(!failed.is_won() && !failed.is_busy());
    }

    #[test]
    fn a_split_vote_waits_for_those_who_may_decide_it_and_not_for_the_silent() {
        for split in [["ours", "x 5", "ours", "silent", "silent"], ["x 5", "y 5", "ours", "silent", "silent"]] {
            assert!(counted_of(split, 0..5).is_none(), "one who is expected was not waited for: {split:?}");
            let vote = counted_of(split, 0..3).expect("the silent were waited for");
            assert!(!vote.is_won() && vote.is_busy(), "{split:?}: {vote:?}");
        }
        // One more who is expected may make it.
        let vote = counted_of(["ours", "x 5", "ours", "ours", "silent"], [0, 1, 2, 3]).unwrap();
        assert!(vote.is_won(), "{vote:?}");
        let split = ["ours", "x 5", "x 5", "ours", "silent"];
        assert!(counted_of(split, [0, 1, 2, 3]).unwrap().is_busy());
    }

    #[test]
    fn those_who_were_silent_are_waited_for_where_no_majority_has_answered() {
        assert!(counted_of(["ours", "ours", "-", "silent", "silent"], 0..3).is_none());
        assert!(counted_of(["ours", "ours", "-", "-", "ours"], 0..4).unwrap().is_won());
        assert!(counted_of(["x 5", "ours", "ours", "ours", "silent"], []).unwrap().is_busy());
    }

    fn vote(answers: &[&str]) -> Vote {
        let mut vote = Vote { nodes: answers.len(), ..Vote::default() };
        for (index, answer) in answers.iter().enumerate() {
            vote.add(index, claimed(index, answer));
        }
        vote
    }

    #[test]
    fn a_number_that_may_make_a_second_round_needless_is_waited_for() {
        let split = ["ours+", "ours", "ours", "ours+", "ours+"];
        assert_eq!(counted(split).number(), Decision::Won(8));
        let claimed_again = ["ours+9", "ours+", "ours+9", "ours+", "ours+"];
        assert_eq!(counted(claimed_again).number(), Decision::Won(8));
        let beside_the_silent = counted_of(["ours+", "ours", "ours", "silent", "silent"], 0..3).unwrap();
        assert_eq!(beside_the_silent.number(), Decision::Write { number: 8, ahead: 0 });
        assert!(counted(["ours", "ours", "ours", "silent", "silent"]).is_won(), "it needs two rounds anyway");
    }

    #[test]
    fn a_holder_is_waited_for_until_enough_of_its_leases_are_over() {
        let took = Duration::from_millis(1);
        let wait = |answers: &[&str]| vote(answers).retry_in(took).unwrap().as_millis();
        assert_eq!(wait(&["x 5000", "x 4000", "x 3000", "x 2000", "x 1000"]), 3000);
        assert_eq!(wait(&["ours", "ours", "x 3000", "x 2000", "x 1000"]), 1000);
        assert_eq!(wait(&["ours", "-", "-", "X 2000", "X 1000"]), 2000);
        assert_eq!(wait(&["ours", "y 3000", "-", "-", "X 1000"]), 3000);
    }

    #[test]
    fn a_split_vote_is_tried_again_jittered_pause() {
        let took = Duration::from_millis(1);
        for split in [
            &["ours", "ours", "x 3000", "x 2000", "y 1000"],
            &["ours", "x 9000", "y 9000", "z 9000", "-"],
            // Silent ones would make a majority for another attempt, which has as little of them as this one.
            &["ours", "ours", "x 9000", "-", "-"],
            &["ours", "x 9000", "x 9000", "-", "-"],
            &["X 9000", "ours", "ours", "y 9000", "-"],
        ] {
            assert!(vote(split).retry_in(took).unwrap() < Duration::from_millis(9), "{split:?}");
        }
    }
}
