use leasehold_core::{Capabilities, Engine};

use crate::backend::AgentBackend;

/// Locks and reader/writer locks of the store that an agent of this host serves: what the store promises, without its address and its
/// password.
///
/// What a process holds is given back at once when that process ends, however it ends. An agent that ends takes nothing along: leases
/// go on in the store, and are renewed by way of the next agent. Clones share the connection and the waiters of this process.
#[derive(Clone, Debug)]
pub struct AgentLocks {
    engine: Engine<AgentBackend>,
}

impl AgentLocks {
    /// What an agent promises beyond mutual exclusion, where the store behind it does; a connected locker knows what that is.
    /// Nothing needs to be connected.
    pub fn claims() -> Capabilities {
        AgentBackend::claims()
    }

    /// Closes the locker: guards are lost, what they held is released, and waiters get an error. See [`Engine::close`].
    pub async fn close(&self) {
        self.engine.close().await;
    }
}

leasehold_core::backed!(AgentLocks, AgentBackend);
