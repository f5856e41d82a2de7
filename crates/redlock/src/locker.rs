use leasehold_core::{Capabilities, Engine, Result};

use crate::backend::RedlockBackend;
use crate::node::NAME;
use crate::node_state::NodeState;
use crate::repair;

/// Locks on a majority of independent Redis servers.
///
/// `Redlock` is a [`Locker`](crate::Locker) and an [`Admin`](crate::Admin). Clones share their connections, which end with
/// [`close`](Self::close) or with the last clone and guard.
#[derive(Clone, Debug)]
pub struct Redlock {
    engine: Engine<RedlockBackend>,
}

impl Redlock {
    /// The capabilities of this backend with fencing on, without connecting.
    pub fn claims() -> Capabilities {
        RedlockBackend::claims(true)
    }

    /// Asks all nodes for their condition, and returns it in the order in which the nodes were given. Takes a second or so
    /// where a node is silent.
    ///
    /// # Cancel safety
    /// Safe.
    pub async fn node_states(&self) -> Vec<NodeState> {
        repair::node_states(&self.engine.backend().store.nodes).await
    }

    /// Brings nodes back that lost their data, and returns the condition of each node afterwards.
    ///
    /// Waits until every lock that may have counted on a lost vote is over, which is at most the longest lease in use; then
    /// copies the counters of a majority of the other nodes, and lets the repaired node vote again. Does nothing if no
    /// node is [`Reset`](crate::NodeCondition::Reset).
    ///
    /// # Errors
    /// - [`Unavailable`](leasehold_core::ErrorKind::Unavailable) if fewer than a majority of the nodes have their data, or a
    ///   node fails meanwhile.
    /// - [`Backend`](leasehold_core::ErrorKind::Backend) if a node refuses to tell a lease or a counter, and no majority of
    ///   the others tells.
    ///
    /// # Cancel safety
    /// Dropping the future leaves the node out of votes; it is safe to call `repair` again.
    pub async fn repair(&self) -> Result<Vec<NodeState>> {
        let store = &self.engine.backend().store;
        repair::repair(&store.nodes, &store.clock).await.map_err(|error| error.with_backend(NAME))
    }

    /// Closes the locker and all its clones: guards are lost with the reason
    /// [`Shutdown`](leasehold_core::LossReason::Shutdown), and their leases are released. The connections are closed, unless
    /// they are clients of the caller. Ends within three times the [`node_limit`](crate::RedlockBuilder::node_limit), or 3 s
    /// if that is more. See [`Engine::close`].
    pub async fn close(&self) {
        self.engine.close().await;
    }
}

leasehold_core::backed!(Redlock, RedlockBackend);
