use std::fmt;

use leasehold_core::{Error, ErrorKind};

/// How a node is, or why its vote does not count.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NodeCondition {
    /// It answers, and its answers count.
    Serving,
    /// It answers and has no marker in service: it came back without its data, or the deployment was never set up.
    /// It does not count until [`heal`](crate::Redlock::heal).
    Reset,
    /// It is the same server as this other node, or has a copy of its data. It never counts.
    SameServer(String),
    /// It gave no answer, for this reason.
    Unreachable(String),
    /// It refused, for this reason: a password, a permission, an entry of a wrong type.
    Refused(String),
}

/// How one of the nodes is.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct NodeState {
    /// Its address, without credentials.
    pub node: String,
    /// How it is.
    pub condition: NodeCondition,
}

/// Too few nodes answered: the source of an [`Error`], for those who want to know which.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct QuorumNotReached {
    /// How many nodes gave an answer that counts.
    pub answered: usize,
    /// How many must.
    pub needed: usize,
    /// How many there are.
    pub nodes: usize,
    /// What became of the others.
    pub failures: Vec<NodeState>,
}

impl fmt::Display for NodeCondition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Serving => f.write_str("serving"),
            Self::Reset => f.write_str("node reset (it has no data; heal it)"),
            Self::SameServer(other) => write!(f, "the same server as {other}"),
            Self::Unreachable(why) | Self::Refused(why) => f.write_str(why),
        }
    }
}

impl fmt::Display for NodeState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.node, self.condition)
    }
}

impl fmt::Display for QuorumNotReached {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "quorum not reached: {} of {} nodes answered, {} must", self.answered, self.nodes, self.needed)
    }
}

impl std::error::Error for QuorumNotReached {}

impl QuorumNotReached {
    /// For good if the nodes that refuse are enough to prevent a majority, else for the moment.
    pub(crate) fn into_error(self, operation: &'static str) -> Error {
        self.into_error_or(ErrorKind::Unavailable, operation)
    }

    /// The same, of another kind where it is not for good.
    pub(crate) fn into_error_or(self, otherwise: ErrorKind, operation: &'static str) -> Error {
        let refused = self.failures.iter().filter(|state| matches!(state.condition, NodeCondition::Refused(_))).count();
        let kind = if refused > self.nodes - self.needed { ErrorKind::Backend } else { otherwise };
        let failures: Vec<String> = self.failures.iter().map(ToString::to_string).collect();
        let detail =
            format!("quorum not reached: {} of {} nodes answered: {}", self.answered, self.nodes, failures.join("; "));
        Error::new(kind, operation).detail(detail).caused_by(self)
    }
}

/// Why a node gave no vote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) condition: NodeCondition,
    /// It may have done what it was asked all the same.
    pub(crate) maybe_done: bool,
    /// It answered: what it has under this name is not ours.
    pub(crate) foreign: bool,
}

impl Failure {
    pub(crate) fn of(condition: NodeCondition) -> Self {
        Self { condition, maybe_done: false, foreign: false }
    }

    pub(crate) fn of_a_foreign_entry(self) -> Self {
        Self { foreign: true, ..self }
    }

    pub(crate) fn is_transient(&self) -> bool {
        matches!(self.condition, NodeCondition::Unreachable(_))
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let told = match std::error::Error::source(&error) {
            Some(source) => format!("{error}: {source}"),
            None => error.to_string(),
        };
        let told = told.strip_prefix("ask Redis: ").unwrap_or(&told).to_owned();
        let condition =
            if error.is_transient() { NodeCondition::Unreachable(told) } else { NodeCondition::Refused(told) };
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
            .map(|(index, condition)| NodeState { node: format!("n{index}"), condition })
            .collect();
        QuorumNotReached { answered: 5 - failures.len(), needed: 3, nodes: 5, failures }.into_error("acquire")
    }

    #[test]
    fn a_missing_quorum_is_for_good_only_if_those_who_refuse_prevent_it() {
        let silent = || NodeCondition::Unreachable("silent".into());
        let refused = || NodeCondition::Refused("NOPERM".into());
        for (conditions, kind) in [
            (vec![silent(), silent(), silent()], ErrorKind::Unavailable),
            (vec![refused(), refused(), silent()], ErrorKind::Unavailable),
            (vec![refused(), refused(), refused()], ErrorKind::Backend),
            (vec![NodeCondition::Reset, NodeCondition::Reset, refused()], ErrorKind::Unavailable),
        ] {
            assert_eq!(error(conditions.clone()).kind(), kind, "{conditions:?}");
        }
        let error = error(vec![silent(), NodeCondition::Reset, refused()]);
        let expected = "acquire: store unavailable: quorum not reached: 2 of 5 nodes answered: \
                        n0: silent; n1: node reset (it has no data; heal it); n2: NOPERM";
        assert_eq!(error.to_string(), expected);
        let source = std::error::Error::source(&error).unwrap().downcast_ref::<QuorumNotReached>().unwrap();
        assert_eq!((source.answered, source.needed, source.failures.len()), (2, 3, 3));
    }

    #[test]
    fn what_may_have_been_done_is_told_from_what_was_not() {
        for (kind, maybe_done, refused) in [
            (ErrorKind::Indeterminate, true, false),
            (ErrorKind::Unavailable, false, false),
            (ErrorKind::Backend, false, true),
            (ErrorKind::Closed, false, true),
        ] {
            let failure = Failure::from(Error::new(kind, "ask Redis").detail("why"));
            assert_eq!(failure.maybe_done, maybe_done, "{kind:?}");
            assert_eq!(matches!(failure.condition, NodeCondition::Refused(_)), refused, "{kind:?}");
            assert!(!failure.condition.to_string().starts_with("ask Redis"), "{failure:?}");
        }
    }
}
