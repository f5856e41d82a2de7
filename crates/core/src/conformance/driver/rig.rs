//! What the author of a backend implements: how a server is started, and what is done to it.

use std::collections::BTreeMap;

use async_trait::async_trait;

use crate::conformance::verdict::Failure;
use crate::{BoxFuture, ErrorKind, Kind, Locks};

/// How the suite gets servers. Each case starts one or two for itself.
#[async_trait]
pub trait Rig: Send + Sync + 'static {
    /// The kind of the store, through whose `connect` the cases get their lockers.
    fn kind(&self) -> Kind;

    /// Starts a server with an empty store, in which everything is prepared that an operator prepares once, such as tables and users.
    async fn start(&self, room: Room) -> Able<Box<dyn Rigged>>;

    /// How many cycles of one key the case about their cost has. Fewer where a cycle takes long.
    fn cycles(&self) -> usize {
        10_000
    }
}

/// How much room a server has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Room {
    /// Enough.
    Ample,
    /// A dozen connections at most, so that a case can take them all.
    FewConnections,
}

/// A server that a case has for itself. It ends when this value is dropped.
#[async_trait]
pub trait Rigged: Send + Sync {
    /// The URL of the store, with the address `127.0.0.1:PORT`. If it has a password, that is [`PASSWORD`].
    fn url(&self) -> String;

    /// The port of that address.
    fn port(&self) -> u16;

    /// Stops the server: its connections stay open, and nothing is answered.
    fn pause(&self) -> Able<()> {
        never("it stops no server")
    }

    /// Lets a stopped server go on, with all that it was sent meanwhile.
    fn resume(&self) -> Able<()> {
        never("it stops no server")
    }

    /// Ends the server as a power cut would.
    async fn kill(&mut self) -> Able<()> {
        never("it kills no server")
    }

    /// Starts the server again on its port, with the data that it had.
    async fn restart(&mut self) -> Able<()> {
        never("it starts no server again with its data")
    }

    /// Ends the server, and starts it again on its port without the locks that it knew, and with what was prepared.
    async fn forget(&mut self) -> Able<()> {
        never("it starts no server without its data")
    }

    /// Ends all connections of the clients from the side of the server, and answers how many there were.
    async fn end_sessions(&self) -> Able<u64> {
        never("its server has no command that ends the connections of others")
    }

    /// Brings a fault about, and answers what an error says of it.
    async fn bring(&mut self, fault: Fault) -> Able<Said> {
        never(&format!("it does not bring about {fault:?}"))
    }

    /// Ends a fault.
    async fn mend(&mut self, fault: Fault) -> Able<()> {
        never(&format!("it does not end {fault:?}"))
    }

    /// A URL with a user and the password [`PASSWORD`], for a user who may do what the backend needs and no more.
    async fn login(&mut self) -> Able<String> {
        never("its server knows no passwords")
    }

    /// Puts so many keys of others into the store.
    async fn fill(&self, _keys: usize) -> Able<()> {
        never("it fills no server")
    }

    /// What the server keeps for its clients, by name: rows, keys, leases, watches, channels, sessions. The suite counts connections.
    async fn keeps(&self) -> Able<BTreeMap<&'static str, u64>> {
        never("it does not ask the server what it keeps")
    }

    /// A locker on a client or a pool of the caller's own.
    async fn borrowed(&self) -> Able<Borrowed> {
        never("its lockers take no client of the caller's")
    }
}

/// The password in the URLs of a [`Rigged`], of which nothing may be told. There it is spelt `hunter2%2Fcanary`.
pub const PASSWORD: &str = "hunter2/canary";

/// A state in which a server refuses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The server takes no writes for the moment.
    ReadOnly,
    /// Its disk or its memory is full.
    Full,
    /// It takes no further connection.
    NoConnectionLeft,
    /// The user of [`Rigged::login`] lacks a right that a claim needs.
    MissingRight,
}

impl Fault {
    /// What the contract makes of it.
    pub(super) fn kind(self) -> ErrorKind {
        if self == Self::MissingRight { ErrorKind::Backend } else { ErrorKind::Unavailable }
    }
}

/// What the text of an error contains, with its causes: the server's own reason.
pub type Said = &'static [&'static str];

/// A locker on a client of the caller's own.
pub struct Borrowed {
    /// The locker.
    pub locks: Locks,
    /// Whether the caller's client still works.
    pub works: Box<dyn Fn() -> BoxFuture<'static, bool> + Send + Sync>,
}

impl std::fmt::Debug for Borrowed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Borrowed").field(&self.locks).finish()
    }
}

/// What a rig did, or why it did not.
pub type Able<T> = Result<T, Unable>;

/// Why a rig, or a case, did not do something.
#[derive(Debug)]
pub enum Unable {
    /// The machine lacks the server. The case is ignored, unless every server is required.
    Absent(String),
    /// This store's rig cannot. The case is ignored.
    Never(String),
    /// It should have worked. The case fails.
    Failed(String),
}

/// This store's rig cannot, for this reason.
///
/// # Errors
/// Always.
pub fn never<T>(why: &str) -> Able<T> {
    Err(Unable::Never(why.to_owned()))
}

impl<E: std::error::Error> From<E> for Unable {
    fn from(error: E) -> Self {
        Failure::from(error).into()
    }
}

impl From<Failure> for Unable {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure.0)
    }
}
