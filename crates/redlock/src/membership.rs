use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use leasehold_core::{Error, ErrorKind, OwnerId, Result};
use tokio::time::sleep;

use crate::answer::{Marker, Phase};
use crate::error::Failure;
use crate::node::{MarkerStep, Node, Peer};
use crate::node_state::NodeCondition;
use crate::nodes::Nodes;

/// Connects to all nodes, sets up a new deployment, and needs a majority, in which each node is a server of its own.
pub(crate) async fn connect(nodes: &Nodes) -> Result<()> {
    let connected = join_all(nodes.all().iter().map(|node| node.connect())).await;
    let mut peers = Vec::new();
    for (node, connected) in nodes.all().iter().zip(connected) {
        match connected {
            Ok(peer) => peers.push(Some(peer)),
            Err(error) if error.kind() == ErrorKind::InvalidOptions => return Err(error),
            Err(error) => {
                node.leave(Failure::from(error).condition);
                peers.push(None);
            }
        }
    }
    let markers = marker_step_or_leave(nodes, &mut peers, MarkerStep::Look).await;
    if let Some((one, other)) = same_server(&markers) {
        return Err(one_server_twice(nodes, one, other));
    }
    let markers = begin_setup(nodes, &mut peers, markers).await;
    // Where the user may not read which server it is, the incarnation tells.
    if let Some((one, other)) = same_server(&markers) {
        return Err(one_server_twice(nodes, one, other));
    }
    finish_setup(nodes, &peers, &markers).await;
    let known = nodes.all().iter().zip(peers).zip(markers);
    join_all(known.map(|((node, peer), marker)| join(node, peer, marker))).await;
    needs_a_majority(nodes)
}

/// Warns of the nodes that do not take part, and fails if those that do are no majority.
fn needs_a_majority(nodes: &Nodes) -> Result<()> {
    let failures: Vec<_> =
        nodes.all().iter().enumerate().filter_map(|(index, node)| Some((index, node.peer().err()?))).collect();
    for (index, failure) in &failures {
        let node = &nodes.all()[*index].name;
        tracing::warn!(node, why = %failure.condition, "a node of the quorum does not take part");
    }
    let joined = nodes.all().len() - failures.len();
    if joined < nodes.majority() {
        return Err(nodes.quorum_not_reached(joined, failures).into_error("connect"));
    }
    Ok(())
}

/// Tries to let absent nodes join, until all take part. If this never runs, they join with the next program that connects.
pub(crate) async fn join_absent(nodes: Arc<Nodes>) {
    let mut pause = Duration::from_millis(500);
    while nodes.all().iter().any(|node| node.peer().is_err()) {
        sleep(pause).await;
        pause = (pause * 2).min(Duration::from_secs(5));
        for (index, node) in nodes.all().iter().enumerate() {
            if node.peer().is_err()
                && let Err(failure) = admit(&nodes, index).await
            {
                node.leave(failure.condition);
            }
        }
    }
}

/// Lets a node take part that could not be reached before.
///
/// The other nodes are asked only once it answers, and one of them that does not answer stays: it may be slow for a
/// moment, and without it there may be no majority.
async fn admit(nodes: &Nodes, index: usize) -> Result<(), Failure> {
    let node = &nodes.all()[index];
    let peer = node.connect().await?;
    node.marker_step(&peer, MarkerStep::Look, OwnerId::random()).await?;
    let mut peers: Vec<Option<Peer>> = nodes.all().iter().map(|node| node.peer().ok()).collect();
    peers[index] = Some(peer);
    let markers = marker_step(nodes, &peers, MarkerStep::Look).await;
    let markers: Vec<Option<Marker>> = markers.into_iter().map(|marker| marker.and_then(Result::ok)).collect();
    refuse_same_server(nodes, index, &markers)?;
    let markers = begin_setup(nodes, &mut peers, markers).await;
    refuse_same_server(nodes, index, &markers)?;
    finish_setup(nodes, &peers, &markers).await;
    if let Some(peer) = peers[index].take() {
        Node::load_scripts(&peer).await?;
        node.join(peer, markers[index].clone());
        tracing::info!(node = node.name, "a node of the quorum takes part again");
    }
    Ok(())
}

/// Fails if the node at `index` is the same server as another one.
fn refuse_same_server(nodes: &Nodes, index: usize, markers: &[Option<Marker>]) -> Result<(), Failure> {
    let known = nodes.all().iter().zip(markers).map(|(node, marker)| marker.clone().or_else(|| node.marker()));
    match same_server(&known.collect::<Vec<_>>()) {
        Some((one, other)) if one == index || other == index => {
            let other = nodes.all()[one + other - index].name.clone();
            Err(Failure::of(NodeCondition::SameServer(other)))
        }
        _ => Ok(()),
    }
}

/// Reads or changes the markers. A node that gives no answer, or refuses, loses its peer and does not take part.
async fn marker_step_or_leave(nodes: &Nodes, peers: &mut [Option<Peer>], step: MarkerStep) -> Vec<Option<Marker>> {
    let markers = marker_step(nodes, peers, step).await;
    let mut known = Vec::new();
    for ((node, peer), marker) in nodes.all().iter().zip(peers).zip(markers) {
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
/// There are two halves, so that a program that is interrupted in between leaves nothing that looks like a node without
/// its data.
async fn begin_setup(nodes: &Nodes, peers: &mut [Option<Peer>], markers: Vec<Option<Marker>>) -> Vec<Option<Marker>> {
    let is_new = |marker: &Option<Marker>| {
        marker.as_ref().is_some_and(|marker| matches!(marker.phase, Phase::None | Phase::New))
    };
    if !markers.iter().all(is_new) {
        return markers;
    }
    marker_step_or_leave(nodes, peers, MarkerStep::Begin).await
}

/// The second half of setting up a new deployment: where a node is in service, or all are set up, the new ones go into
/// service.
async fn finish_setup(nodes: &Nodes, peers: &[Option<Peer>], markers: &[Option<Marker>]) {
    let phases = || markers.iter().map(|marker| marker.as_ref().map_or(Phase::None, |marker| marker.phase));
    if !phases().any(|phase| phase == Phase::New) {
        return;
    }
    if phases().any(|phase| phase == Phase::Up) || phases().all(|phase| phase == Phase::New) {
        // A node that does not get this is put into service by the next program that connects.
        marker_step(nodes, peers, MarkerStep::Finish).await;
    }
}

/// Reads or changes the markers of the nodes that have a peer.
async fn marker_step(nodes: &Nodes, peers: &[Option<Peer>], step: MarkerStep) -> Vec<Option<Result<Marker, Failure>>> {
    let ask = |(node, peer): (&Arc<Node>, &Option<Peer>)| {
        let (node, peer) = (Arc::clone(node), peer.clone());
        async move { Some(node.marker_step(&peer?, step, OwnerId::random()).await) }
    };
    join_all(nodes.all().iter().zip(peers).map(ask)).await
}

/// Reads the markers of the nodes that take part.
pub(crate) async fn markers(nodes: &Nodes) -> Vec<Result<Marker, Failure>> {
    let look = |node: &Arc<Node>| {
        let node = Arc::clone(node);
        async move {
            let marker = node.marker_step(&node.peer()?, MarkerStep::Look, OwnerId::random()).await?;
            node.note_reset(marker.phase != Phase::Up);
            Ok(marker)
        }
    };
    join_all(nodes.all().iter().map(look)).await
}

fn one_server_twice(nodes: &Nodes, one: usize, other: usize) -> Error {
    let (one, other) = (&nodes.all()[one].name, &nodes.all()[other].name);
    Error::new(ErrorKind::InvalidOptions, "connect").detail(format!(
        "{one} and {other} are the same server, or one has a copy of the other's data: their votes are one vote"
    ))
}

/// Lets a node take part whose peer answers.
async fn join(node: &Node, peer: Option<Peer>, marker: Option<Marker>) {
    let Some(peer) = peer else { return };
    match Node::load_scripts(&peer).await {
        Ok(()) => {
            peer.warn_of_eviction().await;
            node.join(peer, marker);
        }
        Err(failure) => node.leave(failure.condition),
    }
}

/// Two nodes that are the same server.
fn same_server(markers: &[Option<Marker>]) -> Option<(usize, usize)> {
    let same = |a: &str, b: &str| !a.is_empty() && a == b;
    let known: Vec<(usize, &Marker)> =
        markers.iter().enumerate().filter_map(|(index, marker)| Some((index, marker.as_ref()?))).collect();
    known.iter().enumerate().find_map(|(position, (one, marker))| {
        let other = known[position + 1..]
            .iter()
            .find(|(_, other)| same(&marker.run, &other.run) || same(&marker.incarnation, &other.incarnation));
        other.map(|(other, _)| (*one, *other))
    })
}
