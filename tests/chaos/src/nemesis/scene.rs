//! What faults can reach.

use std::thread;
use std::time::Duration;

use leasehold_core::Admin;
use leasehold_testkit::within;
use tokio::runtime::Runtime;

use super::schedule::Planned;
use crate::clients::Clients;
use crate::setups::Setup;
use crate::stores::{Node, Shape, Store};

/// The keys that are released by force, and whose slots move: often the one that is held for long.
const KEYS: [&str; 2] = ["mutex/0", "register/0"];

/// How long servers have to agree. Sentinels wait six seconds between two fail-overs, and ten until an old primary follows.
pub(super) const PATIENCE: Duration = Duration::from_secs(60);

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
        Ok(planned.one_of(&agents.iter().collect::<Vec<_>>()))
    }

    /// The servers to which the way is broken: clients that cannot reach one of several ask another.
    pub(super) fn out_of_reach(&self, planned: &Planned) -> Vec<&Node> {
        let all = matches!(self.store.shape, Shape::Members { .. }) && planned.choice % 16 < 8;
        if all { self.store.nodes.iter().collect() } else { vec![self.node(planned)] }
    }

    /// The server that comes so many after the one that is hit.
    pub(super) fn after(&self, planned: &Planned, further: u64) -> &Node {
        let all = self.store.nodes.iter();
        // The replica of a slot has no clients that a fault could hit.
        let clustered = matches!(self.store.shape, Shape::Cluster);
        let nodes: Vec<&Node> = all.filter(|node| !clustered || node.is_primary()).collect();
        Planned { choice: planned.choice + further, ..*planned }.one_of(&nodes)
    }
}

/// The key that is hit.
pub(super) fn key(planned: &Planned) -> &'static str {
    planned.one_of(&KEYS)
}

/// Ends servers as a power cut would, and starts them again. The canary are the processes.
pub(super) fn kill_and_revive(hit: &[&Node], lasts: Duration) -> Result<u64, String> {
    let before: Vec<u32> = hit.iter().map(|node| node.process().pid()).collect();
    for node in hit {
        node.process().kill();
    }
    thread::sleep(lasts / 2);
    hit.iter().try_for_each(|node| node.revive(&[]))?;
    Ok(u64::from(hit.iter().zip(before).all(|(node, before)| node.process().pid() != before)))
}

/// Asks again and again until there is an answer.
pub(super) fn until<T>(what: &str, ask: impl Fn() -> Option<T>) -> Result<T, String> {
    within(PATIENCE, Duration::from_millis(20), ask).ok_or_else(|| format!("not within {PATIENCE:?}: {what}"))
}
