//! What faults can reach.

use leasehold_core::Admin;
use tokio::runtime::Runtime;

use super::schedule::Planned;
use crate::clients::Clients;
use crate::setups::Setup;
use crate::stores::{Node, Shape, Store};

/// The keys that are released by force, and whose slots move: often the one that is held for long.
const KEYS: [&str; 4] = ["mutex/0", "register/0", "leader", "leader"];

/// Everything that faults need.
pub(crate) struct Scene<'r> {
    pub(crate) setup: &'r Setup,
    pub(crate) store: &'r Store,
    pub(crate) clients: &'r Clients,
    pub(crate) runtime: &'r Runtime,
    pub(crate) operator: &'r dyn Admin,
}

impl Scene<'_> {
    /// The server that is hit.
    pub(super) fn node(&self, planned: &Planned) -> &Node {
        self.after(planned, 0)
    }

    /// The agent that is hit.
    pub(super) fn agent(&self, planned: &Planned) -> Result<&Node, String> {
        let Shape::Agents(agents) = &self.store.shape else { return Err("there is no agent".to_owned()) };
        Ok(&agents[usize::try_from(planned.choice).unwrap_or(0) % agents.len()])
    }

    /// The servers to which the way is broken: clients that cannot reach one of several ask another.
    pub(super) fn out_of_reach(&self, planned: &Planned) -> Vec<&Node> {
        let all = matches!(self.store.shape, Shape::Members { .. }) && planned.choice % 16 < 8;
        if all { self.store.nodes.iter().collect() } else { vec![self.node(planned)] }
    }

    /// Another server that is hit with it.
    pub(super) fn next_to(&self, planned: &Planned) -> &Node {
        self.after(planned, 1)
    }

    fn after(&self, planned: &Planned, further: usize) -> &Node {
        let all = self.store.nodes.iter();
        // The replica of a slot has no clients that a fault could hit.
        let clustered = matches!(self.store.shape, Shape::Cluster);
        let nodes: Vec<&Node> = all.filter(|node| !clustered || node.is_primary()).collect();
        nodes[(usize::try_from(planned.choice).unwrap_or(0) + further) % nodes.len()]
    }
}

/// The key that is hit.
pub(super) fn key(planned: &Planned) -> &'static str {
    KEYS[usize::try_from(planned.choice).unwrap_or(0) % KEYS.len()]
}
