use leasehold_core::{Backed, Capabilities, Engine, EngineOptions, Result};
use leasehold_redis::fred::clients::Client;

use crate::backend::RedlockBackend;
use crate::builder::RedlockBuilder;
use crate::node_state::NodeState;

/// Locks on a majority of independent Redis servers.
///
/// Clones share their connections, which end with [`close`](Self::close) or with the last clone and guard.
#[derive(Clone, Debug)]
pub struct Redlock {
    engine: Engine<RedlockBackend>,
}

impl Redlock {
    /// Connects, with default settings: `redlock:redis://a,redis://b,redis://c`. See [`RedlockBuilder::url`].
    ///
    /// # Errors
    /// As for [`RedlockBuilder::connect`].
    ///
    /// # Cancel safety
    /// As for [`RedlockBuilder::connect`].
    pub async fn connect(url: &str) -> Result<Self> {
        Self::builder().url(url).connect().await
    }

    /// To connect with other settings, or to a list of nodes.
    pub fn builder() -> RedlockBuilder {
        RedlockBuilder::default()
    }

    /// Uses clients that the caller made, connected and will close, one for each node, in the namespace `leasehold`.
    ///
    /// Give them a reconnection policy: by default they never come back after a lost connection.
    ///
    /// # Errors
    /// As for [`RedlockBuilder::connect`].
    ///
    /// # Cancel safety
    /// As for [`RedlockBuilder::connect`].
    pub async fn from_clients(clients: impl IntoIterator<Item = Client>) -> Result<Self> {
        Self::builder().clients(clients).connect().await
    }

    /// What it promises beyond mutual exclusion, before anything is connected, with fencing on.
    pub fn claims() -> Capabilities {
        RedlockBackend::claims(true)
    }

    /// How each node is, in the order in which they were given. Asks them all, for a second or so.
    ///
    /// # Cancel safety
    /// Safe.
    pub async fn node_states(&self) -> Vec<NodeState> {
        self.engine.backend().node_states().await
    }

    /// Brings nodes back that lost their data, and answers how each node is then.
    ///
    /// Waits until every lock that may have counted on a lost vote is over, which is at most the longest lease in use,
    /// then copies the counters of a majority of the other nodes, and lets the node vote again. Does nothing if no
    /// node is [`Reset`](crate::NodeCondition::Reset).
    ///
    /// # Errors
    /// [`Unavailable`](leasehold_core::ErrorKind::Unavailable) when fewer than a majority of the nodes have their data,
    /// or one fails meanwhile; [`Backend`](leasehold_core::ErrorKind::Backend) when one refuses to tell a lease or a
    /// counter, and no majority of the others tells.
    ///
    /// # Cancel safety
    /// Dropping the future leaves the node out; repeating it is safe.
    pub async fn repair(&self) -> Result<Vec<NodeState>> {
        self.engine.backend().repair().await
    }

    /// Ends it: guards are told [`Shutdown`](leasehold_core::LossReason::Shutdown), what they held is released, and
    /// the connections are closed if they are our own: within three times the [`node_limit`](RedlockBuilder::node_limit),
    /// or 3 s if that is more. See [`Engine::close`].
    pub async fn close(&self) {
        self.engine.close().await;
    }
}

impl Redlock {
    pub(crate) fn with(backend: RedlockBackend, settings: EngineOptions) -> Self {
        Self { engine: Engine::with(backend, settings) }
    }
}

impl From<RedlockBackend> for Redlock {
    fn from(backend: RedlockBackend) -> Self {
        Self::with(backend, EngineOptions::new())
    }
}

impl Backed for Redlock {
    type Backend = RedlockBackend;
    fn engine(&self) -> &Engine<RedlockBackend> {
        &self.engine
    }
}
