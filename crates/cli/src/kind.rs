use std::pin::Pin;
use std::time::Duration;

use leasehold_core::{Capabilities, Result};

use crate::store::Store;

/// A kind of store: its URL schemes, its capabilities, and how to connect to it and look after it.
#[derive(Clone, Copy)]
pub(crate) struct Kind {
    /// The name of its backend, in errors and tables.
    pub(crate) name: &'static str,
    /// The URL schemes that messages and tables name.
    pub(crate) schemes: &'static [&'static str],
    /// Further URL schemes that are accepted.
    pub(crate) aliases: &'static [&'static str],
    /// The name of its crate.
    pub(crate) package: &'static str,
    /// The situation in which to use it, in a few words.
    pub(crate) purpose: &'static str,
    /// Whether its URL can contain a password.
    pub(crate) takes_password: bool,
    /// Whether its owners are sessions with an id, so that `--session` makes sense.
    pub(crate) takes_session: bool,
    /// The capabilities that its backend claims, without connecting.
    pub(crate) capabilities: fn() -> Capabilities,
    pub(crate) connect: for<'u> fn(Target<'u>) -> StoreFuture<'u, Store>,
    /// Looks for what makes the servers of a URL unsafe although they grant locks. `None` for a kind without servers.
    pub(crate) examine: Option<Examine>,
    /// Advice for a store that refuses an operation.
    pub(crate) cure: &'static str,
    /// Maintenance of its tables. `None` for a kind without tables.
    pub(crate) tables: Option<Tables>,
    /// The states of its nodes, and their repair. `None` unless a majority of several nodes decides.
    pub(crate) nodes: Option<Nodes>,
}

/// Where to connect, and as which session.
#[derive(Clone, Copy)]
pub(crate) struct Target<'u> {
    pub(crate) url: &'u str,
    #[cfg_attr(not(feature = "redis"), expect(dead_code, reason = "only redis-reentrant has sessions"))]
    pub(crate) session: Option<&'u str>,
}

/// Maintenance of a store that is kept in tables.
#[derive(Clone, Copy)]
pub(crate) struct Tables {
    pub(crate) migrate: for<'u> fn(&'u str) -> StoreFuture<'u, ()>,
    pub(crate) gc: for<'u> fn(&'u str, Duration) -> StoreFuture<'u, u64>,
}

/// States and repair of the nodes of a store in which a majority decides.
#[derive(Clone, Copy)]
pub(crate) struct Nodes {
    pub(crate) states: for<'u> fn(&'u str) -> StoreFuture<'u, Vec<Finding>>,
    pub(crate) heal: for<'u> fn(&'u str) -> StoreFuture<'u, Vec<Finding>>,
}

/// One line of `doctor`: the result of one check.
pub(crate) struct Finding {
    pub(crate) health: Health,
    pub(crate) text: String,
}

/// How bad a finding is. As a number it is the exit code.
#[derive(Clone, Copy)]
pub(crate) enum Health {
    Well = 0,
    Warning = 1,
    Error = 2,
}

impl Health {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Well => "ok",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

/// Returns a warning for each fault of the servers of a URL.
pub(crate) type Examine = for<'u> fn(&'u str) -> StoreFuture<'u, Vec<String>>;

impl Kind {
    /// The folder of its crate, below `crates/` in the repository.
    pub(crate) fn folder(&self) -> &'static str {
        self.package.strip_prefix("leasehold-").unwrap_or(self.package)
    }
}

/// What an operation on a store returns.
pub(crate) type StoreFuture<'u, T> = Pin<Box<dyn Future<Output = Result<T>> + 'u>>;
