use std::fmt;

use leasehold_core::{Error, ErrorKind};

use crate::node_state::{NodeCondition, NodeState};

/// Too few nodes gave an answer that counts. It is the [source](std::error::Error::source) of an [`Error`], and tells which
/// nodes failed, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct QuorumNotReached {
    /// How many nodes gave an answer that counts.
    pub answered: usize,
    /// How many nodes must answer: a majority.
    pub needed: usize,
    /// How many nodes the deployment has.
    pub nodes: usize,
    /// The nodes without an answer that counts, each with the reason.
    pub failures: Vec<NodeState>,
}

impl fmt::Display for QuorumNotReached {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { answered, needed, nodes, .. } = self;
        write!(f, "quorum not reached: {answered} of {nodes} nodes answered, ")?;
        if answered < needed { write!(f, "{needed} must") } else { write!(f, "and no {needed} of them alike") }
    }
}

impl std::error::Error for QuorumNotReached {}

impl QuorumNotReached {
    /// [`into_error_or`](Self::into_error_or) of kind [`Unavailable`](ErrorKind::Unavailable).
    pub(crate) fn into_error(self, operation: &'static str) -> Error {
        self.into_error_or(ErrorKind::Unavailable, operation)
    }

    /// An error of kind [`Closed`](ErrorKind::Closed) after that, of kind [`Backend`](ErrorKind::Backend) if the nodes that refuse are
    /// enough to prevent a majority, else of the kind `otherwise`.
    pub(crate) fn into_error_or(self, otherwise: ErrorKind, operation: &'static str) -> Error {
        let refused = self.failures.iter().filter(|state| matches!(state.condition, NodeCondition::Refused(_))).count();
        let kind = if self.failures.iter().any(|state| matches!(state.condition, NodeCondition::Closed(_))) {
            ErrorKind::Closed
        } else if refused > self.nodes - self.needed {
            ErrorKind::Backend
        } else {
            otherwise
        };
        let failures: Vec<String> = self.failures.iter().map(ToString::to_string).collect();
        let detail = format!("{self}: {}", failures.join("; "));
        Error::new(kind, operation).detail(detail).caused_by(self)
    }
}

/// Why a node gave no vote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) condition: NodeCondition,
    /// The node may have carried out the request all the same.
    pub(crate) maybe_done: bool,
    /// The node answered that the entry under this name was not written by Leasehold.
    pub(crate) foreign: bool,
}

impl Failure {
    pub(crate) fn of(condition: NodeCondition) -> Self {
        Self { condition, maybe_done: false, foreign: false }
    }

    /// Whether the node refused, and did nothing.
    pub(crate) fn is_refused(&self) -> bool {
        matches!(self.condition, NodeCondition::Refused(_) | NodeCondition::Closed(_)) && !self.maybe_done
    }

    /// Whether the node gave no answer, so that the request may be sent again.
    pub(crate) fn is_transient(&self) -> bool {
        matches!(self.condition, NodeCondition::Unreachable(_))
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let told = error.to_string();
        let told = told.strip_prefix("ask Redis: ").unwrap_or(&told);
        let cause = std::error::Error::source(&error).map(ToString::to_string).unwrap_or_default();
        // Behind a word of the driver's stand the server's, which may be told already.
        let words = cause.split_once(": ").map_or(&*cause, |(_, words)| words);
        let text = if told.contains(words) { told.to_owned() } else { format!("{told}: {cause}") };
        let condition = match error.kind() {
            ErrorKind::Closed => NodeCondition::Closed(text),
            _ if error.is_transient() => NodeCondition::Unreachable(text),
            _ => NodeCondition::Refused(text),
        };
        Self { condition, maybe_done: error.kind() == ErrorKind::Indeterminate, foreign: false }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(conditions: Vec<NodeCondition>) -> Error {
        let failures: Vec<_> = conditions
            .into_iter()
            .enumerate()
            .map(|(index, condition)| NodeState::new(&format!("n{index}"), condition))
            .collect();
        QuorumNotReached { answered: 5 - failures.len(), needed: 3, nodes: 5, failures }.into_error("acquire")
    }

    #[test]
    fn a_missing_quorum_is_final_only_if_the_nodes_that_refuse_prevent_a_majority() {
        let silent = || NodeCondition::Unreachable("silent".into());
        let refused = || NodeCondition::Refused("NOPERM".into());
        for (conditions, kind) in [
            (vec![silent(), silent(), silent()], ErrorKind::Unavailable),
            (vec![refused(), refused(), silent()], ErrorKind::Unavailable),
            (vec![refused(), refused(), refused()], ErrorKind::Backend),
            (vec![NodeCondition::Reset, NodeCondition::Reset, refused()], ErrorKind::Unavailable),
            (vec![refused(), refused(), refused(), NodeCondition::Closed("over".into())], ErrorKind::Closed),
        ] {
            assert_eq!(error(conditions.clone()).kind(), kind, "{conditions:?}");
        }
        let error = error(vec![silent(), NodeCondition::Reset, refused()]);
        let expected = "acquire: store unavailable: quorum not reached: 2 of 5 nodes answered, 3 must: \
                        n0: silent; n1: node reset (it has no data; repair it); n2: NOPERM";
        assert_eq!(error.to_string(), expected);
        let source = std::error::Error::source(&error).unwrap().downcast_ref::<QuorumNotReached>().unwrap();
        assert_eq!((source.answered, source.needed, source.failures.len()), (2, 3, 3));
    }
}
