use std::time::Duration;

use futures::future::join_all;
use leasehold_core::clock::lease_over;
use leasehold_core::{Error, ErrorKind, LockKey, OwnerId, Result};
use tokio::time::sleep;

use crate::answer::{Marker, Phase};
use crate::backend::RedlockBackend;
use crate::condition::{Failure, NodeCondition, NodeState};
use crate::fleet::Fleet;
use crate::node::{FENCE, LOCK, Mark, Node};

impl RedlockBackend {
    /// How each node is.
    pub(crate) async fn node_states(&self) -> Vec<NodeState> {
        let markers = self.fleet.markers().await;
        let state = |(index, marker): (usize, Result<Marker, Failure>)| {
            let condition = match marker {
                Ok(Marker { phase: Phase::Up, .. }) => NodeCondition::Serving,
                Ok(_) => NodeCondition::Reset,
                Err(failure) => failure.condition,
            };
            NodeState { node: self.fleet.name(index), condition }
        };
        markers.into_iter().enumerate().map(state).collect()
    }

    /// Brings nodes back that lost their data, as far as a majority of the others still has its own.
    pub(crate) async fn heal(&self) -> Result<Vec<NodeState>> {
        let states = self.node_states().await;
        let places = |wanted: &NodeCondition| {
            let is_so = |(index, state): (usize, &NodeState)| (state.condition == *wanted).then_some(index);
            states.iter().enumerate().filter_map(is_so).collect::<Vec<usize>>()
        };
        let (reset, serving) = (places(&NodeCondition::Reset), places(&NodeCondition::Serving));
        if reset.is_empty() {
            return Ok(states);
        }
        // Of the others, as each node that is healed sees them: a majority of N - 1.
        if serving.len() < self.fleet.majority() {
            return Err(self.beyond_healing(serving.len(), &states));
        }
        let healed = self.refill(&reset, &serving).await;
        healed.map_err(|failure| failure_of_healing(&failure))?;
        Ok(self.node_states().await)
    }

    async fn refill(&self, reset: &[usize], serving: &[usize]) -> Result<(), Failure> {
        let nodes = self.fleet.nodes();
        // One that loses its data once more meanwhile loses this too, and does not come into service below.
        let mut healing = Vec::new();
        for index in reset {
            let (peer, incarnation) = (nodes[*index].peer()?, OwnerId::random());
            nodes[*index].mark(&peer, Mark::Heal, incarnation).await?;
            healing.push((&nodes[*index], peer, incarnation));
        }
        // Every lock in which a lost vote counted is on at least one of these, and is over when its lease there is.
        // Not before may the node vote again.
        let leases = join_all(serving.iter().map(|index| longest_lease(&nodes[*index]))).await;
        let longest = enough(leases, self.fleet.majority())?.into_iter().max().unwrap_or_default();
        if !longest.is_zero() {
            let over = lease_over(self.clock.now(), longest);
            tracing::info!(wait = ?longest, "healing waits until the leases that may have counted on a lost vote are over");
            while self.clock.now() < over {
                sleep(over.since(self.clock.now()).min(Duration::from_secs(1))).await;
            }
        }
        let copied = join_all(serving.iter().map(|index| copy_counters(&self.fleet, *index, reset))).await;
        enough(copied, self.fleet.majority())?;
        for (node, peer, incarnation) in healing {
            let marker = node.mark(&peer, Mark::Healed, incarnation).await?;
            if marker.phase != Phase::Up {
                return Err(Failure::of(NodeCondition::Reset));
            }
            tracing::info!(node = node.name(), "healed");
        }
        Ok(())
    }

    fn beyond_healing(&self, serving: usize, states: &[NodeState]) -> Error {
        let (majority, nodes) = (self.fleet.majority(), states.len());
        let states: Vec<String> = states.iter().map(ToString::to_string).collect();
        Error::new(ErrorKind::Unavailable, "heal").detail(format!(
            "{serving} of {nodes} nodes have their data, {majority} must; bring them back, or see \"When most nodes lost \
             their data\": {}",
            states.join("; ")
        ))
    }
}

fn failure_of_healing(failure: &Failure) -> Error {
    let refused = matches!(failure.condition, NodeCondition::Refused(_));
    let kind = if refused { ErrorKind::Backend } else { ErrorKind::Unavailable };
    Error::new(kind, "heal").detail(format!("a node failed meanwhile: {}", failure.condition))
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

async fn longest_lease(node: &Node) -> Result<Duration, Failure> {
    let (mut longest, mut after) = (Duration::ZERO, None);
    loop {
        let (keys, next): (Vec<LockKey>, _) = node.scan("", LOCK, after.as_ref()).await?;
        for (key, seen) in keys.iter().zip(node.inspect(&keys).await?) {
            // Who does not tell may have one, and what never ends is not over.
            if let Some((entry, left)) = seen? {
                if !entry.is_ours() {
                    return Err(node.foreign(key));
                }
                longest = longest.max(left.ok_or_else(|| node.endless(key))?);
            }
        }
        match next {
            Some(cursor) => after = Some(cursor),
            None => return Ok(longest),
        }
    }
}

/// Raises the counters of all `to` to those of one node, page by page.
async fn copy_counters(fleet: &Fleet, from: usize, to: &[usize]) -> Result<(), Failure> {
    let (node, mut after) = (&fleet.nodes()[from], None);
    loop {
        let (keys, next) = node.scan("", FENCE, after.as_ref()).await?;
        let counters: Vec<(LockKey, u64)> = keys.iter().cloned().zip(node.counters(&keys).await?).collect();
        if !counters.is_empty() {
            for index in to {
                fleet.nodes()[*index].raise(&counters).await?;
            }
        }
        match next {
            Some(cursor) => after = Some(cursor),
            None => return Ok(()),
        }
    }
}
