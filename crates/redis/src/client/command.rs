use fred::error::Error as DriverError;
use fred::types::Value;
use fred::types::config::Server;
use leasehold_core::Error;

#[derive(Clone, Debug)]
pub(crate) struct Command {
    pub(crate) name: &'static str,
    pub(crate) arguments: Vec<Value>,
    pub(crate) target: Target,
}

/// Where a command goes. Means something in a Cluster only.
#[derive(Clone, Debug)]
pub(crate) enum Target {
    Slot(u16),
    Node(Option<Server>),
}

/// Why there is no answer.
#[derive(Debug)]
pub(crate) enum SendError {
    NotSent(Error),
    /// It was sent, or may have been.
    Sent(DriverError),
}
