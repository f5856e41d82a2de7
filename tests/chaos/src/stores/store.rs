//! The servers of a run, as clients and faults find them.

use std::sync::atomic::AtomicUsize;

use leasehold_testkit::Proxy;
use leasehold_testkit::launch::Process;

use super::node::Node;

/// Clients of a database log in as this user: an administrator may exceed the number of connections, and write to a read-only
/// server.
pub(crate) const USER: &str = "locks";

/// A store that serves.
pub(crate) struct Store {
    pub(crate) nodes: Vec<Node>,
    /// The address for the runner, over no link.
    pub(crate) direct: String,
    /// The addresses for clients: each leads over links of its own.
    pub(crate) urls: Vec<String>,
    pub(crate) shape: Shape,
}

/// How servers belong together.
pub(crate) enum Shape {
    /// They do not.
    Plain,
    /// These watch over a primary and its replicas.
    Sentinels {
        watchers: Vec<Process>,
        /// Nothing is granted while a replica is away.
        all_confirm: bool,
    },
    Cluster,
    /// They agree by majority. Each is heard by the others over one of these ways.
    Members {
        ways: Vec<Proxy>,
    },
    /// The store is reached by way of these.
    Agents(Vec<Node>),
    /// A primary and its replica, and the address at which clients find the primary.
    Pair {
        address: Proxy,
        primary: AtomicUsize,
    },
}

impl Store {
    pub(super) fn without_servers(url: String) -> Self {
        Self { nodes: Vec::new(), urls: vec![url.clone()], direct: url, shape: Shape::Plain }
    }
}
