use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use futures::future::{BoxFuture, join_all};
use futures::stream::FuturesUnordered;
use leasehold_core::{Error, ErrorKind, OwnerId, Result};
use leasehold_redis::warn_of_eviction;
use tokio::time::sleep;

use crate::answer::{Marker, Phase};
use crate::condition::{Failure, NodeCondition, NodeState, QuorumNotReached};
use crate::node::{Mark, Node, Peer};

/// The nodes.
#[derive(Debug)]
pub(crate) struct Fleet {
    nodes: Vec<Arc<Node>>,
}

/// Answers of several nodes, as they come, each with the node's place.
pub(crate) type Asked<T> = FuturesUnordered<BoxFuture<'static, (usize, T)>>;

impl Fleet {
    pub(crate) fn new(nodes: Vec<Node>) -> Self {
        Self { nodes: nodes.into_iter().map(Arc::new).collect() }
    }

    pub(crate) fn nodes(&self) -> &[Arc<Node>] {
        &self.nodes
    }

    pub(crate) fn places(&self) -> BTreeSet<usize> {
        (0..self.nodes.len()).collect()
    }

    pub(crate) fn majority(&self) -> usize {
        self.nodes.len() / 2 + 1
    }

    /// Asks all at once. Nothing is sent before the answers are waited for.
    pub(crate) fn ask<T, F>(&self, question: impl Fn(Arc<Node>) -> F) -> Asked<T>
    where
        F: Future<Output = T> + Send + 'static,
    {
        self.ask_some(0..self.nodes.len(), question)
    }

    pub(crate) fn ask_some<T, F>(
        &self,
        whom: impl IntoIterator<Item = usize>,
        question: impl Fn(Arc<Node>) -> F,
    ) -> Asked<T>
    where
        F: Future<Output = T> + Send + 'static,
    {
        let ask = |index: usize| {
            let answer = question(Arc::clone(&self.nodes[index]));
            Box::pin(async move { (index, answer.await) }) as BoxFuture<'static, _>
        };
        whom.into_iter().map(ask).collect()
    }

    pub(crate) fn quorum_not_reached(&self, answered: usize, failures: Vec<(usize, Failure)>) -> QuorumNotReached {
        let mut failures = failures;
        failures.sort_by_key(|(index, _)| *index);
        let state =
            |(index, failure): (usize, Failure)| NodeState { node: self.name(index), condition: failure.condition };
        QuorumNotReached {
            answered,
            needed: self.majority(),
            nodes: self.nodes.len(),
            failures: failures.into_iter().map(state).collect(),
        }
    }

    /// Connects to all, and needs a majority of them, each a server of its own.
    pub(crate) async fn assemble(&self) -> Result<()> {
        let reached = join_all(self.nodes.iter().map(|node| node.reach())).await;
        let mut peers = Vec::new();
        for (node, reached) in self.nodes.iter().zip(reached) {
            match reached {
                Ok(peer) => peers.push(Some(peer)),
                Err(error) if error.kind() == ErrorKind::InvalidOptions => return Err(error),
                Err(error) => {
                    node.leave(Failure::from(error).condition);
                    peers.push(None);
                }
            }
        }
        let markers = self.mark_or_leave(&mut peers, Mark::Look).await;
        if let Some((one, other)) = twins(&markers) {
            return Err(self.same_server(one, other));
        }
        let markers = self.set_up(&mut peers, markers).await;
        // Where we may not know which server it is, its incarnation tells.
        if let Some((one, other)) = twins(&markers) {
            return Err(self.same_server(one, other));
        }
        self.put_into_service(&peers, &markers).await;
        let known = self.nodes.iter().zip(peers).zip(markers);
        join_all(known.map(|((node, peer), marker)| prepare(node, peer, marker))).await;
        let failures: Vec<_> =
            self.nodes.iter().enumerate().filter_map(|(index, node)| Some((index, node.peer().err()?))).collect();
        for (index, failure) in &failures {
            tracing::warn!(node = self.name(*index), why = %failure.condition, "a node of the quorum does not take part");
        }
        let up = self.nodes.len() - failures.len();
        if up < self.majority() {
            return Err(self.quorum_not_reached(up, failures).into_error("connect"));
        }
        Ok(())
    }

    /// Goes on knocking at nodes that do not take part, until all do. If it never runs, they join with the next
    /// program that connects.
    pub(crate) async fn knock(self: Arc<Self>) {
        let mut pause = Duration::from_millis(500);
        while self.nodes.iter().any(|node| node.peer().is_err()) {
            sleep(pause).await;
            pause = (pause * 2).min(Duration::from_secs(5));
            for index in 0..self.nodes.len() {
                if self.nodes[index].peer().is_err()
                    && let Err(failure) = self.admit(index).await
                {
                    self.nodes[index].leave(failure.condition);
                }
            }
        }
    }

    /// Lets a node take part that could not be reached before.
    ///
    /// The others are asked only once it answers, and one of them that does not answer stays: it may be slow for a
    /// moment, and without it there may be no majority.
    async fn admit(&self, index: usize) -> Result<(), Failure> {
        let node = &self.nodes[index];
        let peer = node.reach().await?;
        node.mark(&peer, Mark::Look, OwnerId::random()).await?;
        let mut peers: Vec<Option<Peer>> = self.nodes.iter().map(|node| node.peer().ok()).collect();
        peers[index] = Some(peer);
        let markers = self.mark(&peers, Mark::Look).await.into_iter().map(|marker| marker.and_then(Result::ok));
        let markers: Vec<Option<Marker>> = markers.collect();
        let refuse_twins = |markers: &[Option<Marker>]| {
            let others = self.nodes.iter().zip(markers).map(|(node, marker)| marker.clone().or_else(|| node.marker()));
            match twins(&others.collect::<Vec<_>>()) {
                Some((one, other)) if one == index || other == index => {
                    Err(Failure::of(NodeCondition::SameServer(self.name(one + other - index))))
                }
                _ => Ok(()),
            }
        };
        refuse_twins(&markers)?;
        let markers = self.set_up(&mut peers, markers).await;
        refuse_twins(&markers)?;
        self.put_into_service(&peers, &markers).await;
        if let Some(peer) = peers[index].take() {
            Node::teach(&peer).await?;
            node.join(peer, markers[index].clone());
            tracing::info!(node = node.name(), "a node of the quorum takes part again");
        }
        Ok(())
    }

    /// Reads the markers, or moves them on. Whoever does not tell, or refuses, is not a peer any more.
    async fn mark_or_leave(&self, peers: &mut [Option<Peer>], mark: Mark) -> Vec<Option<Marker>> {
        let markers = self.mark(peers, mark).await;
        let mut known = Vec::new();
        for ((node, peer), marker) in self.nodes.iter().zip(peers).zip(markers) {
            match marker {
                Some(Ok(marker)) => known.push(Some(marker)),
                Some(Err(failure)) => {
                    *peer = None;
                    node.leave(failure.condition);
                    known.push(None);
                }
                None => known.push(None),
            }
        }
        known
    }

    /// The first half of setting up a new deployment: only when every node answers and none is in service.
    ///
    /// In halves, so that whoever is interrupted in between leaves nothing that looks like a node without its data.
    async fn set_up(&self, peers: &mut [Option<Peer>], markers: Vec<Option<Marker>>) -> Vec<Option<Marker>> {
        let is_new = |marker: &Option<Marker>| {
            marker.as_ref().is_some_and(|marker| matches!(marker.phase, Phase::None | Phase::New))
        };
        if !markers.iter().all(is_new) {
            return markers;
        }
        self.mark_or_leave(peers, Mark::Begin).await
    }

    /// The second half: where a node is in service, or all are set up, the new ones go into service.
    async fn put_into_service(&self, peers: &[Option<Peer>], markers: &[Option<Marker>]) {
        let phases = || markers.iter().map(|marker| marker.as_ref().map_or(Phase::None, |marker| marker.phase));
        if !phases().any(|phase| phase == Phase::New) {
            return;
        }
        if phases().any(|phase| phase == Phase::Up) || phases().all(|phase| phase == Phase::New) {
            // One that does not hear it is put into service by the next program that connects.
            self.mark(peers, Mark::Finish).await;
        }
    }

    async fn mark(&self, peers: &[Option<Peer>], step: Mark) -> Vec<Option<Result<Marker, Failure>>> {
        let mark = |(node, peer): (&Arc<Node>, &Option<Peer>)| {
            let (node, peer) = (Arc::clone(node), peer.clone());
            async move { Some(node.mark(&peer?, step, OwnerId::random()).await) }
        };
        join_all(self.nodes.iter().zip(peers).map(mark)).await
    }

    /// The markers of the nodes that take part.
    pub(crate) async fn markers(&self) -> Vec<Result<Marker, Failure>> {
        let look = |node: &Arc<Node>| {
            let node = Arc::clone(node);
            async move { node.mark(&node.peer()?, Mark::Look, OwnerId::random()).await }
        };
        join_all(self.nodes.iter().map(look)).await
    }

    pub(crate) fn name(&self, index: usize) -> String {
        self.nodes[index].name().to_owned()
    }

    fn same_server(&self, one: usize, other: usize) -> Error {
        let (one, other) = (self.name(one), self.name(other));
        Error::new(ErrorKind::InvalidOptions, "connect").detail(format!(
            "{one} and {other} are the same server, or one has a copy of the other's data: their votes are one vote"
        ))
    }
}

async fn prepare(node: &Node, peer: Option<Peer>, marker: Option<Marker>) {
    let Some(peer) = peer else { return };
    match Node::teach(&peer).await {
        Ok(()) => {
            warn_of_eviction(&peer.connection).await;
            node.join(peer, marker);
        }
        Err(failure) => node.leave(failure.condition),
    }
}

/// Two nodes that are one server.
fn twins(markers: &[Option<Marker>]) -> Option<(usize, usize)> {
    let same = |a: &str, b: &str| !a.is_empty() && a == b;
    let known: Vec<(usize, &Marker)> =
        markers.iter().enumerate().filter_map(|(index, marker)| Some((index, marker.as_ref()?))).collect();
    known.iter().enumerate().find_map(|(place, (one, marker))| {
        let twin = known[place + 1..]
            .iter()
            .find(|(_, other)| same(&marker.run, &other.run) || same(&marker.incarnation, &other.incarnation));
        twin.map(|(other, _)| (*one, *other))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn marker(incarnation: &str, run: &str) -> Marker {
        Marker { phase: Phase::Up, incarnation: incarnation.into(), run: run.into() }
    }

    #[test]
    fn servers_are_the_same_by_run_id_or_by_marker_and_unknown_is_not_the_same() {
        for (markers, expected) in [
            ([marker("a", "1"), marker("b", "2"), marker("c", "3")], None),
            ([marker("a", "1"), marker("b", "2"), marker("c", "1")], Some((0, 2))),
            ([marker("a", ""), marker("b", ""), marker("b", "")], Some((1, 2))),
            ([marker("a", ""), marker("", ""), marker("", "")], None),
        ] {
            let markers = markers.map(Some);
            assert_eq!(twins(&markers), expected, "{markers:?}");
        }
    }
}
