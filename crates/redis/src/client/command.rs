use fred::error::Error as DriverError;
use fred::types::Value;
use fred::types::config::Server;
use leasehold_core::Error;

#[derive(Clone, Debug)]
pub(crate) struct Command {
    pub(crate) name: &'static str,
    pub(crate) arguments: Vec<Value>,
    pub(crate) target: Target,
    /// The arguments of a `WAIT` right behind it, on the connection that answered it: on another one, which may lead to another
    /// server, it would be about something else. The answer is then a list of both answers.
    pub(crate) wait: Option<Vec<Value>>,
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
