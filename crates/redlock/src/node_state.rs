use std::fmt;

/// The condition of a node, or why its vote does not count.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NodeCondition {
    /// The node answers, and its answers count.
    Serving,
    /// The node answers and has no marker in service: it came back without its data, or the deployment was never set up.
    /// Its vote does not count until [`repair`](crate::Redlock::repair).
    Reset,
    /// The node is the same server as this other node, or has a copy of its data. Its vote never counts.
    SameServer(String),
    /// The node gave no answer, for this reason.
    Unreachable(String),
    /// The node refused, for this reason: a password, a permission, an entry of a wrong type.
    Refused(String),
    /// The node was not asked, or its answer not waited for, for this reason: the locker was closed, or the runtime that connected has
    /// ended.
    Closed(String),
}

/// One node and its condition.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct NodeState {
    /// The address of the node, without credentials.
    pub node: String,
    /// The condition of the node.
    pub condition: NodeCondition,
}

impl fmt::Display for NodeCondition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Serving => f.write_str("serving"),
            Self::Reset => f.write_str("node reset (it has no data; repair it)"),
            Self::SameServer(other) => write!(f, "the same server as {other}"),
            Self::Unreachable(why) | Self::Refused(why) | Self::Closed(why) => f.write_str(why),
        }
    }
}

impl NodeState {
    pub(crate) fn new(node: &str, condition: NodeCondition) -> Self {
        Self { node: node.to_owned(), condition }
    }
}

impl fmt::Display for NodeState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.node, self.condition)
    }
}
