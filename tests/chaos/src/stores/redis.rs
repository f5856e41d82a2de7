//! Redis servers whose data survive: single ones, also behind agents, a Sentinel set, a Cluster.

use leasehold_testkit::launch::Process;
use leasehold_testkit::launch::redis::{CLUSTER_NODE, cluster_url, form_cluster, sentinel_url, start_sentinels};

use super::node::{LINKS, Node, Program};
use super::shim::Library;
use super::store::{Shape, Store};

/// Every write is on the disk before it is answered.
const DURABLE: [&str; 4] = ["--appendonly", "yes", "--appendfsync", "always"];

/// A replica that asks for all data is not kept waiting for others that might.
const AT_ONCE: [&str; 2] = ["--repl-diskless-sync-delay", "0"];

/// How long a primary may be silent before Sentinels have another one take its place, in milliseconds.
const PATIENCE: &str = "1000";

fn server(library: &Library, number: usize, arguments: &[&str]) -> Result<Node, String> {
    Node::start(Program::Redis, &format!("redis-{number}"), library, &[&DURABLE[..], arguments].concat())
}

/// So many independent servers.
pub(crate) fn start(library: &Library, count: usize, scheme: &str) -> Result<Store, String> {
    let nodes = (0..count).map(|number| server(library, number, &[])).collect::<Result<Vec<_>, _>>()?;
    let address = |port: &dyn Fn(&Node) -> u16| {
        let servers: Vec<_> = nodes.iter().map(|node| format!("redis://127.0.0.1:{}", port(node))).collect();
        format!("{scheme}{}", servers.join(","))
    };
    let direct = address(&|node| node.port);
    let urls = (0..LINKS).map(|link| address(&|node| node.links[link].port())).collect();
    Ok(Store { nodes, direct, urls, shape: Shape::Plain })
}

/// Two agents, as on two hosts: one Redis with its links, and an agent over each.
pub(crate) fn start_agents(library: &Library) -> Result<Store, String> {
    let behind = start(library, 1, "")?;
    let agent = |at: usize| Node::agent(&format!("agent-{at}"), &library.folder, &behind.urls[at]);
    let agents = (0..LINKS).map(agent).collect::<Result<Vec<_>, _>>()?;
    let urls = agents.iter().map(|agent| format!("agent:{}", agent.data.display())).collect();
    Ok(Store { urls, shape: Shape::Agents(agents), ..behind })
}

/// A primary, two replicas, and three Sentinels. Clients are told by these where the primary is, so no link leads to it.
pub(crate) fn start_sentinel_set(library: &Library, all_confirm: bool) -> Result<Store, String> {
    let primary = server(library, 0, &AT_ONCE)?;
    let address = format!("127.0.0.1 {}", primary.port);
    let follows = [&AT_ONCE[..], &["--replicaof", &address]].concat();
    let nodes = vec![primary, server(library, 1, &follows)?, server(library, 2, &follows)?];
    let watchers = start_sentinels(&library.folder, nodes[0].port, nodes.len() - 1, PATIENCE)?;
    let url = sentinel_url(&watchers.iter().map(Process::port).collect::<Vec<_>>());
    Ok(Store::at(url, nodes, Shape::Sentinels { watchers, all_confirm }))
}

/// Three nodes that share the hash slots, and a replica of each. A replica takes over when it is told to, and not because a busy
/// machine keeps its primary silent.
pub(crate) fn start_cluster(library: &Library) -> Result<Store, String> {
    let arguments = [&CLUSTER_NODE[..], &AT_ONCE, &["--cluster-replica-no-failover", "yes"]].concat();
    let nodes = (0..6).map(|number| server(library, number, &arguments)).collect::<Result<Vec<_>, _>>()?;
    let ports: Vec<u16> = nodes.iter().map(|node| node.port).collect();
    form_cluster(&ports)?;
    Ok(Store::at(cluster_url(&ports), nodes, Shape::Cluster))
}
