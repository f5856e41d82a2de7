//! A store that clients reach by way of two agents, as on two hosts.

use std::path::Path;

use super::node::{LINKS, Node};
use super::redis;
use super::shim::Library;
use super::store::{Shape, Store};

/// One Redis with its links; over each an agent.
pub(crate) fn start(folder: &Path, library: Option<&Library>) -> Result<Store, String> {
    let behind = redis::start(folder, library, 1, "")?;
    let agent = |at: usize| Node::agent(format!("agent-{at}"), folder.join(format!("agent-{at}")), &behind.urls[at]);
    let agents = (0..LINKS).map(agent).collect::<Result<Vec<_>, _>>()?;
    let urls = agents.iter().map(|agent| format!("agent:{}", agent.data.display())).collect();
    Ok(Store { urls, shape: Shape::Agents(agents), ..behind })
}
