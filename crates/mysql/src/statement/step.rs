use std::time::Duration;

/// A statement, and how it is to be sent: on which connections, for how long, and whether a second time.
#[derive(Clone, Copy, Debug)]
#[must_use]
pub struct Step<'s> {
    pub(crate) operation: &'static str,
    pub(crate) statement: &'s str,
    pub(crate) reserved: bool,
    pub(crate) repeatable: bool,
    pub(crate) limit: Duration,
}

impl<'s> Step<'s> {
    /// How long the answer to a statement is waited for unless [`limit`](Self::limit) says otherwise. It is longer than
    /// the server waits for a row, so that a statement that waits is refused by the server and not given up here.
    pub const LIMIT: Duration = Duration::from_millis(2500);

    /// A statement that is sent once, on the connections of the pool, and given up after [`LIMIT`](Self::LIMIT).
    /// Errors name `operation`.
    pub fn new(operation: &'static str, statement: &'s str) -> Self {
        Self { operation, statement, reserved: false, repeatable: false, limit: Self::LIMIT }
    }

    /// Sends the statement on the two connections that are reserved for renewals.
    pub fn reserved(self) -> Self {
        Self { reserved: true, ..self }
    }

    /// Allows a second sending: carrying the statement out twice has the effect of carrying it out once. It is sent
    /// again when the connection broke and the server has ended the session in which the statement was sent.
    pub fn repeatable(self) -> Self {
        Self { repeatable: true, ..self }
    }

    /// Gives the statement up after `limit`; its outcome is then unknown.
    pub fn limit(self, limit: Duration) -> Self {
        Self { limit, ..self }
    }
}
