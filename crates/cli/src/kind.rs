use std::pin::Pin;
use std::time::Duration;

use leasehold_core::{Capabilities, Result};

use crate::store::Store;

/// A kind of store: how to recognise it, what it promises, and how to get at it.
#[derive(Clone, Copy)]
pub(crate) struct Kind {
    /// Its name in errors and tables.
    pub(crate) name: &'static str,
    /// What its URLs start with.
    pub(crate) schemes: &'static [&'static str],
    /// What they may start with, too.
    pub(crate) aliases: &'static [&'static str],
    /// The crate that it lives in.
    pub(crate) package: &'static str,
    /// When to use it, in a few words.
    pub(crate) purpose: &'static str,
    /// Whether its URL has a place for a password.
    pub(crate) takes_password: bool,
    /// Whether its owners are sessions with an id.
    pub(crate) takes_session: bool,
    /// What it promises, without asking it.
    pub(crate) capabilities: fn() -> Capabilities,
    pub(crate) connect: for<'u> fn(Target<'u>) -> StoreFuture<'u, Store>,
    /// What makes the servers of this URL unsafe although they may grant locks, where anything can.
    pub(crate) examine: Option<Examine>,
    /// What to do about a server that refuses.
    pub(crate) cure: &'static str,
    /// What has to be done to its tables, where it has any.
    pub(crate) tables: Option<Tables>,
    /// What is known of its nodes, where it has several that vote.
    pub(crate) nodes: Option<Nodes>,
}

/// Where to connect, and as whom.
#[derive(Clone, Copy)]
pub(crate) struct Target<'u> {
    pub(crate) url: &'u str,
    pub(crate) session: Option<&'u str>,
}

/// The upkeep of a store that lives in tables.
#[derive(Clone, Copy)]
pub(crate) struct Tables {
    pub(crate) migrate: for<'u> fn(&'u str) -> StoreFuture<'u, ()>,
    pub(crate) gc: for<'u> fn(&'u str, Duration) -> StoreFuture<'u, u64>,
}

/// The nodes of a store in which a majority decides.
#[derive(Clone, Copy)]
pub(crate) struct Nodes {
    pub(crate) states: for<'u> fn(&'u str) -> StoreFuture<'u, Vec<Finding>>,
    pub(crate) heal: for<'u> fn(&'u str) -> StoreFuture<'u, Vec<Finding>>,
}

/// What `doctor` says of one thing that it looked at.
pub(crate) struct Finding {
    pub(crate) health: Health,
    pub(crate) text: String,
}

/// How bad it is; as a number, the exit code.
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

/// What is wrong with the servers of a URL.
pub(crate) type Examine = for<'u> fn(&'u str) -> StoreFuture<'u, Vec<String>>;

impl Kind {
    /// The folder of its crate in the repository.
    pub(crate) fn folder(&self) -> &'static str {
        self.package.strip_prefix("leasehold-").unwrap_or(self.package)
    }
}

pub(crate) type StoreFuture<'u, T> = Pin<Box<dyn Future<Output = Result<T>> + 'u>>;
