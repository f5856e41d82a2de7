//! The servers of a run, as clients and faults find them.

use std::fs;
use std::sync::atomic::AtomicUsize;

use leasehold_testkit::Proxy;
use leasehold_testkit::launch::Process;

use super::node::Node;
use super::shim::Library;

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
    /// Servers that all clients reach at one address.
    pub(crate) fn at(url: String, nodes: Vec<Node>, shape: Shape) -> Self {
        Self { nodes, direct: url.clone(), urls: vec![url], shape }
    }
}

/// The directory of the locks below the folder of a run.
pub(crate) const LOCKS: &str = "locks";

/// A directory, which several processes use.
pub(crate) fn start_file(library: &Library) -> Result<Store, String> {
    let locks = library.folder.join(LOCKS);
    let made = fs::create_dir(&locks).and_then(|()| locks.canonicalize());
    let locks = made.map_err(|e| format!("{}: {e}", locks.display()))?;
    Ok(Store::at(format!("file:{}", locks.display()), Vec::new(), Shape::Plain))
}
