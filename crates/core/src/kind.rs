use std::fmt;
use std::time::Duration;

use crate::{BoxFuture, Capabilities, Finding, Locks, Result};

/// A kind of store: its URL schemes, its capabilities, and how to connect to it and look after it.
///
/// A backend crate exports one as its constant `KIND`. The crate `leasehold` finds it by the scheme of a URL.
///
/// ```
/// use leasehold_core::{Kind, Locker, Locks, Memory};
///
/// pub const KIND: Kind = Kind::new("memory", &["memory"], || Memory::new().capabilities(), |_target| {
///     Box::pin(async { Ok(Locks::shared(Memory::new())) })
/// })
/// .package("my-crate")
/// .purpose("one process");
/// assert!(KIND.knows("memory") && !KIND.takes_password);
/// ```
#[derive(Clone, Copy, Debug)]
#[must_use]
#[non_exhaustive]
pub struct Kind {
    /// The name of its backend, in errors and tables.
    pub name: &'static str,
    /// The URL schemes that messages and tables name.
    pub schemes: &'static [&'static str],
    /// Further URL schemes that are accepted.
    pub aliases: &'static [&'static str],
    /// The name of its crate.
    pub package: &'static str,
    /// The situation in which to use it, in a few words.
    pub purpose: &'static str,
    /// Whether its URL can contain a password.
    pub takes_password: bool,
    /// Whether its owners are sessions, so that [`Target::session`](method@Target::session) makes sense.
    pub takes_session: bool,
    /// The capabilities that its backend claims, without connecting.
    pub capabilities: fn() -> Capabilities,
    /// Connects to the store of a URL.
    pub connect: Connect,
    /// Looks for what makes the store of a URL unsafe although it may grant locks. `None`: there is nothing to look for.
    pub examine: Option<Examine>,
    /// Advice for a store that refuses an operation.
    pub cure: &'static str,
    /// Maintenance of its tables. `None` for a kind without tables.
    pub tables: Option<Tables>,
    /// The states of its nodes, and their repair. `None` unless a majority of several nodes decides.
    pub nodes: Option<Nodes>,
}

/// Connects to the store of a URL.
pub type Connect = for<'u> fn(Target<'u>) -> BoxFuture<'u, Result<Locks>>;

/// Returns what each check of the store of a URL found.
pub type Examine = for<'u> fn(&'u str) -> BoxFuture<'u, Result<Vec<Finding>>>;

impl Kind {
    /// A kind without passwords, sessions, examination, tables and nodes. `name` is what its
    /// [`Capabilities::backend`] says.
    pub const fn new(
        name: &'static str,
        schemes: &'static [&'static str],
        capabilities: fn() -> Capabilities,
        connect: Connect,
    ) -> Self {
        Self {
            name,
            schemes,
            aliases: &[],
            package: "",
            purpose: "",
            takes_password: false,
            takes_session: false,
            capabilities,
            connect,
            examine: None,
            cure: "look into the log of the store",
            tables: None,
            nodes: None,
        }
    }

    /// Adds schemes that are accepted, and that no message names.
    pub const fn aliases(mut self, aliases: &'static [&'static str]) -> Self {
        self.aliases = aliases;
        self
    }

    /// Sets the name of its crate.
    pub const fn package(mut self, package: &'static str) -> Self {
        self.package = package;
        self
    }

    /// Sets the situation in which to use it, in a few words.
    pub const fn purpose(mut self, purpose: &'static str) -> Self {
        self.purpose = purpose;
        self
    }

    /// Says that its URL can contain a password.
    pub const fn takes_password(mut self) -> Self {
        self.takes_password = true;
        self
    }

    /// Says that its owners are sessions.
    pub const fn takes_session(mut self) -> Self {
        self.takes_session = true;
        self
    }

    /// Sets what looks for faults of its store.
    pub const fn examine(mut self, examine: Examine) -> Self {
        self.examine = Some(examine);
        self
    }

    /// Sets the advice for a store that refuses an operation.
    pub const fn cure(mut self, cure: &'static str) -> Self {
        self.cure = cure;
        self
    }

    /// Sets the maintenance of its tables.
    pub const fn tables(mut self, tables: Tables) -> Self {
        self.tables = Some(tables);
        self
    }

    /// Sets the states and the repair of its nodes.
    pub const fn nodes(mut self, nodes: Nodes) -> Self {
        self.nodes = Some(nodes);
        self
    }

    /// Its schemes and aliases.
    pub fn all_schemes(&self) -> impl Iterator<Item = &'static str> {
        self.schemes.iter().chain(self.aliases).copied()
    }

    /// Whether a URL with this scheme names a store of this kind.
    pub fn knows(&self, scheme: &str) -> bool {
        self.all_schemes().any(|known| known == scheme)
    }
}

/// Where to connect, and as which session. `Debug` shows no URL, because it may contain a password.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct Target<'u> {
    /// The URL, which may contain a password.
    pub url: &'u str,
    /// The id of the session, for a kind that [takes one](field@Kind::takes_session). `None` for a new session.
    pub session: Option<&'u str>,
}

impl<'u> Target<'u> {
    /// A URL, and a new session where there are sessions.
    pub fn new(url: &'u str) -> Self {
        Self { url, session: None }
    }

    /// Sets the id of the session.
    #[must_use]
    pub fn session(self, id: Option<&'u str>) -> Self {
        Self { session: id, ..self }
    }
}

impl fmt::Debug for Target<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Target").field("session", &self.session).finish_non_exhaustive()
    }
}

/// Maintenance of a store that is kept in tables.
#[derive(Clone, Copy, Debug)]
pub struct Tables {
    /// Creates the tables of the database of a URL, or brings older ones up to date.
    pub migrate: for<'u> fn(&'u str) -> BoxFuture<'u, Result<()>>,
    /// Deletes the rows of keys that have been idle for so long, and returns how many. Where the store deletes them by their age,
    /// there is nothing to do, and `Ok(0)` is right.
    pub gc: for<'u> fn(&'u str, Duration) -> BoxFuture<'u, Result<u64>>,
}

/// States and repair of the nodes of a store in which a majority decides.
#[derive(Clone, Copy, Debug)]
pub struct Nodes {
    /// The state of each node of a URL.
    pub states: for<'u> fn(&'u str) -> BoxFuture<'u, Result<Vec<Finding>>>,
    /// Lets nodes that lost their data vote again, and returns the state of each node.
    pub heal: for<'u> fn(&'u str) -> BoxFuture<'u, Result<Vec<Finding>>>,
}
