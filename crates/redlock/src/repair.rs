use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use leasehold_core::clock::lease_over;
use leasehold_core::{Clock, Error, ErrorKind, LockKey, OwnerId, Result};
use tokio::select;
use tokio::time::sleep;

use crate::answer::{Marker, Phase};
use crate::error::Failure;
use crate::membership;
use crate::node::{FENCE, LOCK, MarkerStep, Node, Peer};
use crate::node_state::{NodeCondition, NodeState};
use crate::nodes::Nodes;

/// How often the nodes are looked at for one that has no data.
const LOOK_EVERY: Duration = Duration::from_secs(5);
/// How often a node is told that its repair goes on. What has not been told for three seconds is over; see `marker_step.lua`.
const GOES_ON_EVERY: Duration = Duration::from_secs(1);
/// How often a node that another program repairs is looked at.
const IS_IT_OVER_EVERY: Duration = Duration::from_millis(250);

/// Reads the condition of each node.
pub(crate) async fn node_states(nodes: &Nodes) -> Vec<NodeState> {
    let markers = membership::markers(nodes).await;
    let state = |(index, marker): (usize, Result<Marker, Failure>)| {
        let condition = match marker {
            Ok(Marker { phase: Phase::Up, .. }) => NodeCondition::Serving,
            Ok(_) => NodeCondition::Reset,
            Err(failure) => failure.condition,
        };
        NodeState::new(&nodes.all()[index].name, condition)
    };
    markers.into_iter().enumerate().map(state).collect()
}

/// Looks for nodes that lost their data, and repairs them. Never ends.
pub(crate) async fn keep_repaired(nodes: Arc<Nodes>, clock: Clock) {
    let mut pause = LOOK_EVERY;
    loop {
        sleep(pause).await;
        pause = match repair(&nodes, &clock).await {
            Ok(_) => LOOK_EVERY,
            Err(error) => {
                tracing::warn!(%error, "a repair of the quorum failed; it is tried again");
                (pause * 2).min(12 * LOOK_EVERY)
            }
        }
    }
}

/// Brings nodes back that lost their data, as long as a majority of the nodes still has its own.
pub(crate) async fn repair(nodes: &Nodes, clock: &Clock) -> Result<Vec<NodeState>> {
    let states = node_states(nodes).await;
    let indices = |wanted: &NodeCondition| {
        let is_so = |(index, state): (usize, &NodeState)| (state.condition == *wanted).then_some(index);
        states.iter().enumerate().filter_map(is_so).collect::<Vec<usize>>()
    };
    let (reset, serving) = (indices(&NodeCondition::Reset), indices(&NodeCondition::Serving));
    if reset.is_empty() {
        return Ok(states);
    }
    // A majority of all nodes is a majority of the others, from the side of each node that is repaired.
    if serving.len() < nodes.majority() {
        return Err(beyond_repair(nodes, serving.len(), &states));
    }
    let mut healing = Vec::new();
    for index in reset {
        let began = Healing::begin(nodes, index).await;
        healing.extend(began.map_err(|failure| failed_meanwhile(&failure))?);
    }
    let refilled = select! {
        refilled = refill(nodes, clock, &healing, &serving) => refilled,
        failure = keep_healing(&healing) => Err(failure),
    };
    refilled.map_err(|failure| failed_meanwhile(&failure))?;
    Ok(node_states(nodes).await)
}

/// A node that this program repairs.
struct Healing<'n> {
    node: &'n Node,
    peer: Peer,
    incarnation: OwnerId,
}

impl<'n> Healing<'n> {
    /// Waits while another program repairs the node. `None` if that one has done so.
    async fn begin(nodes: &'n Nodes, index: usize) -> Result<Option<Self>, Failure> {
        let node = &nodes.all()[index];
        let healing = Self { node, peer: node.peer()?, incarnation: OwnerId::random() };
        loop {
            let marker = healing.step(MarkerStep::Heal).await?;
            match marker.phase {
                Phase::Up => return Ok(None),
                Phase::Healing if healing.is_ours(&marker) => return Ok(Some(healing)),
                Phase::Healing => sleep(IS_IT_OVER_EVERY).await,
                Phase::None | Phase::New => return Err(Failure::of(NodeCondition::Reset)),
            }
        }
    }

    async fn step(&self, step: MarkerStep) -> Result<Marker, Failure> {
        self.node.marker_step(&self.peer, step, self.incarnation).await
    }

    fn is_ours(&self, marker: &Marker) -> bool {
        marker.incarnation == self.incarnation.to_hex()
    }
}

/// Tells the nodes that their repair goes on. Ends when another program repairs one of them.
async fn keep_healing(healing: &[Healing<'_>]) -> Failure {
    loop {
        sleep(GOES_ON_EVERY).await;
        for node in healing {
            match node.step(MarkerStep::Heal).await {
                Ok(marker) if node.is_ours(&marker) => {}
                Ok(_) => return Failure::of(NodeCondition::Reset),
                Err(failure) => return failure,
            }
        }
    }
}

/// Copies the counters of the serving nodes to those without data, and puts these into service.
///
/// A node that loses its data once more meanwhile loses its marker too, and does not come into service.
async fn refill(nodes: &Nodes, clock: &Clock, healing: &[Healing<'_>], serving: &[usize]) -> Result<(), Failure> {
    // Every lock in which a lost vote counted is on at least one of these nodes, and is over when its lease there is.
    // Not before may the node vote again.
    let leases = join_all(serving.iter().map(|index| longest_lease(&nodes.all()[*index]))).await;
    let longest = enough(leases, nodes.majority())?.into_iter().max().unwrap_or_default();
    if !longest.is_zero() {
        let over = lease_over(clock.now(), longest);
        tracing::info!(wait = ?longest, "the repair waits until the leases that may have counted on a lost vote are over");
        while clock.now() < over {
            sleep(over.since(clock.now()).min(Duration::from_secs(1))).await;
        }
    }
    let copied = join_all(serving.iter().map(|index| copy_counters(&nodes.all()[*index], healing))).await;
    enough(copied, nodes.majority())?;
    for healed in healing {
        let marker = healed.step(MarkerStep::Healed).await?;
        if marker.phase != Phase::Up {
            return Err(Failure::of(NodeCondition::Reset));
        }
        tracing::info!(node = healed.node.name, "repaired");
    }
    Ok(())
}

fn beyond_repair(nodes: &Nodes, serving: usize, states: &[NodeState]) -> Error {
    let (majority, nodes) = (nodes.majority(), states.len());
    let states: Vec<String> = states.iter().map(ToString::to_string).collect();
    Error::new(ErrorKind::Unavailable, "repair").detail(format!(
        "{serving} of {nodes} nodes have their data, {majority} must; bring them back, or see \"When most nodes lost \
         their data\": {}",
        states.join("; ")
    ))
}

fn failed_meanwhile(failure: &Failure) -> Error {
    let kind = match failure.condition {
        NodeCondition::Closed(_) => ErrorKind::Closed,
        NodeCondition::Refused(_) => ErrorKind::Backend,
        _ => ErrorKind::Unavailable,
    };
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
                    return Err(node.failure_of(key, "foreign", Some("not a lock")));
                }
                longest = longest.max(left.ok_or_else(|| node.failure_of(key, "endless", None))?);
            }
        }
        let Some(cursor) = next else { return Ok(longest) };
        after = Some(cursor);
    }
}

/// Raises the counters of the nodes that are repaired to those of the node `from`, page by page.
async fn copy_counters(from: &Node, healing: &[Healing<'_>]) -> Result<(), Failure> {
    let mut after = None;
    loop {
        let (keys, next) = from.scan("", FENCE, after.as_ref()).await?;
        let counters: Vec<(LockKey, u64)> = keys.iter().cloned().zip(from.read_counters(&keys).await?).collect();
        if !counters.is_empty() {
            for healed in healing {
                healed.node.raise_counters(&counters).await?;
            }
        }
        let Some(cursor) = next else { return Ok(()) };
        after = Some(cursor);
    }
}
