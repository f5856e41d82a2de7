use std::time::Duration;

use futures::future::join_all;
use leasehold_core::clock::lease_over;
use leasehold_core::{Error, ErrorKind, LockKey, OwnerId, Result};
use tokio::time::sleep;

use crate::answer::{Marker, Phase};
use crate::error::Failure;
use crate::membership;
use crate::node::{FENCE, LOCK, MarkerStep, Node};
use crate::node_state::{NodeCondition, NodeState};
use crate::nodes::Nodes;
use crate::store::Store;

/// Reads the condition of each node.
pub(crate) async fn node_states(store: &Store) -> Vec<NodeState> {
    let markers = membership::markers(&store.nodes).await;
    let state = |(index, marker): (usize, Result<Marker, Failure>)| {
        let condition = match marker {
            Ok(Marker { phase: Phase::Up, .. }) => NodeCondition::Serving,
            Ok(_) => NodeCondition::Reset,
            Err(failure) => failure.condition,
        };
        NodeState::new(store.nodes.all()[index].name(), condition)
    };
    markers.into_iter().enumerate().map(state).collect()
}

/// Brings nodes back that lost their data, as long as a majority of the nodes still has its own.
pub(crate) async fn repair(store: &Store) -> Result<Vec<NodeState>> {
    let states = node_states(store).await;
    let indices = |wanted: &NodeCondition| {
        let is_so = |(index, state): (usize, &NodeState)| (state.condition == *wanted).then_some(index);
        states.iter().enumerate().filter_map(is_so).collect::<Vec<usize>>()
    };
    let (reset, serving) = (indices(&NodeCondition::Reset), indices(&NodeCondition::Serving));
    if reset.is_empty() {
        return Ok(states);
    }
    // A majority of all nodes is a majority of the others, from the side of each node that is repaired.
    if serving.len() < store.nodes.majority() {
        return Err(beyond_repair(store, serving.len(), &states));
    }
    let refilled = refill(store, &reset, &serving).await;
    refilled.map_err(|failure| failed_meanwhile(&failure))?;
    Ok(node_states(store).await)
}

/// Copies the counters of the serving nodes to those without data, and puts these into service.
async fn refill(store: &Store, reset: &[usize], serving: &[usize]) -> Result<(), Failure> {
    let (nodes, majority) = (store.nodes.all(), store.nodes.majority());
    // A node that loses its data once more meanwhile loses this marker too, and does not come into service below.
    let mut healing = Vec::new();
    for index in reset {
        let (peer, incarnation) = (nodes[*index].peer()?, OwnerId::random());
        nodes[*index].marker_step(&peer, MarkerStep::Heal, incarnation).await?;
        healing.push((&nodes[*index], peer, incarnation));
    }
    // Every lock in which a lost vote counted is on at least one of these nodes, and is over when its lease there is.
    // Not before may the node vote again.
    let leases = join_all(serving.iter().map(|index| longest_lease(&nodes[*index]))).await;
    let longest = enough(leases, majority)?.into_iter().max().unwrap_or_default();
    if !longest.is_zero() {
        let over = lease_over(store.clock.now(), longest);
        tracing::info!(wait = ?longest, "the repair waits until the leases that may have counted on a lost vote are over");
        while store.clock.now() < over {
            sleep(over.since(store.clock.now()).min(Duration::from_secs(1))).await;
        }
    }
    let copied = join_all(serving.iter().map(|index| copy_counters(&store.nodes, *index, reset))).await;
    enough(copied, majority)?;
    for (node, peer, incarnation) in healing {
        let marker = node.marker_step(&peer, MarkerStep::Healed, incarnation).await?;
        if marker.phase != Phase::Up {
            return Err(Failure::of(NodeCondition::Reset));
        }
        tracing::info!(node = node.name(), "repaired");
    }
    Ok(())
}

fn beyond_repair(store: &Store, serving: usize, states: &[NodeState]) -> Error {
    let (majority, nodes) = (store.nodes.majority(), states.len());
    let states: Vec<String> = states.iter().map(ToString::to_string).collect();
    Error::new(ErrorKind::Unavailable, "repair").detail(format!(
        "{serving} of {nodes} nodes have their data, {majority} must; bring them back, or see \"When most nodes lost \
         their data\": {}",
        states.join("; ")
    ))
}

fn failed_meanwhile(failure: &Failure) -> Error {
    let refused = matches!(failure.condition, NodeCondition::Refused(_));
    let kind = if refused { ErrorKind::Backend } else { ErrorKind::Unavailable };
    Error::new(kind, "repair").detail(format!("a node failed meanwhile: {}", failure.condition))
}

/// The results of a majority, or why there is none.
fn enough<T>(results: Vec<Result<T, Failure>>, majority: usize) -> Result<Vec<T>, Failure> {
    let (mut done, mut last) = (Vec::new(), Failure::of(NodeCondition::Reset));
    for result in results {
        match result {
            Ok(result) => done.push(result),
            Err(failure) => last = failure,
        }
    }
    if done.len() < majority { Err(last) } else { Ok(done) }
}

/// The longest lease that is left on a node.
async fn longest_lease(node: &Node) -> Result<Duration, Failure> {
    let (mut longest, mut after) = (Duration::ZERO, None);
    loop {
        let (keys, next): (Vec<LockKey>, _) = node.scan("", LOCK, after.as_ref()).await?;
        for (key, entry) in keys.iter().zip(node.inspect(&keys).await?) {
            // An entry that cannot be read may be a lock, and one that never expires is never over.
            if let Some((entry, left)) = entry? {
                if !entry.is_ours() {
                    return Err(node.foreign_entry(key));
                }
                longest = longest.max(left.ok_or_else(|| node.endless_entry(key))?);
            }
        }
        match next {
            Some(cursor) => after = Some(cursor),
            None => return Ok(longest),
        }
    }
}

/// Raises the counters of the nodes `to` to those of the node `from`, page by page.
async fn copy_counters(nodes: &Nodes, from: usize, to: &[usize]) -> Result<(), Failure> {
    let (node, mut after) = (&nodes.all()[from], None);
    loop {
        let (keys, next) = node.scan("", FENCE, after.as_ref()).await?;
        let counters: Vec<(LockKey, u64)> = keys.iter().cloned().zip(node.read_counters(&keys).await?).collect();
        if !counters.is_empty() {
            for index in to {
                nodes.all()[*index].raise_counters(&counters).await?;
            }
        }
        match next {
            Some(cursor) => after = Some(cursor),
            None => return Ok(()),
        }
    }
}
