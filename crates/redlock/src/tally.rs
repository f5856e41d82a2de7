use leasehold_core::{Error, ErrorKind, LeaseStatus};

use crate::error::Failure;
use crate::nodes::Nodes;

/// The answers of the nodes to a question about one grant.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    /// How many nodes have the grant.
    pub(crate) held: usize,
    /// How many nodes do not have it.
    not_held: usize,
    /// Whether one of those says that the key was released by force.
    forced: bool,
    pub(crate) failed: Vec<(usize, Failure)>,
}

impl Tally {
    pub(crate) fn add(&mut self, index: usize, answer: Result<LeaseStatus, Failure>) {
        match answer {
            Ok(LeaseStatus::Held) => self.held += 1,
            Ok(LeaseStatus::NotHeld) => self.not_held += 1,
            Ok(LeaseStatus::ForceReleased) => {
                self.not_held += 1;
                self.forced = true;
            }
            Err(failure) => self.failed.push((index, failure)),
        }
    }

    /// How many nodes gave an answer that counts.
    pub(crate) fn answered(&self) -> usize {
        self.held + self.not_held
    }

    /// Whether no majority has said the same yet.
    pub(crate) fn is_open(&self, majority: usize) -> bool {
        self.held < majority && self.not_held < majority
    }

    /// What a majority says. `None`: there is no majority that says the same.
    pub(crate) fn status(&self, majority: usize) -> Option<LeaseStatus> {
        match () {
            () if self.held >= majority => Some(LeaseStatus::Held),
            () if self.not_held >= majority && self.forced => Some(LeaseStatus::ForceReleased),
            () if self.not_held >= majority => Some(LeaseStatus::NotHeld),
            () => None,
        }
    }

    /// Whether a majority does not have the grant.
    pub(crate) fn is_gone(&self, majority: usize) -> bool {
        self.status(majority).is_some_and(|status| status != LeaseStatus::Held)
    }

    /// The error where no majority says the same: what became of the grant is unknown.
    pub(crate) fn into_error(self, nodes: &Nodes, operation: &'static str) -> Error {
        let missing = nodes.quorum_not_reached(self.answered(), self.failed);
        missing.into_error_or(ErrorKind::Indeterminate, operation)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node_state::NodeCondition;

    fn tally(answers: &[Option<LeaseStatus>]) -> Tally {
        let mut tally = Tally::default();
        for (index, answer) in answers.iter().enumerate() {
            tally.add(index, answer.ok_or_else(|| Failure::of(NodeCondition::Unreachable("silent".into()))));
        }
        tally
    }

    #[test]
    fn only_a_majority_says_held_or_not_held() {
        use LeaseStatus::{ForceReleased, Held, NotHeld};
        for (answers, expected) in [
            (&[Some(Held), Some(Held), Some(Held), None, None][..], Some(Held)),
            (&[Some(NotHeld), Some(NotHeld), Some(NotHeld), Some(Held), Some(Held)], Some(NotHeld)),
            (&[Some(ForceReleased), Some(NotHeld), Some(NotHeld), None, None], Some(ForceReleased)),
            (&[Some(Held), Some(Held), Some(NotHeld), Some(NotHeld), None], None),
            (&[Some(Held), Some(Held), None, None, None], None),
            (&[None, None, None, None, None], None),
        ] {
            assert_eq!(tally(answers).status(3), expected, "{answers:?}");
        }
    }
}
