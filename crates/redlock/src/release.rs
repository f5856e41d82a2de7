use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use leasehold_core::{GrantRef, LeaseStatus, Result};

use crate::pending_releases::PendingRelease;
use crate::store::Store;
use crate::tally::Tally;

/// Frees a key on all nodes that still have the owner.
pub(crate) async fn release(store: &Store, grant: &GrantRef) -> Result<LeaseStatus> {
    let tally = release_all(store, grant).await;
    let majority = store.nodes.majority();
    match tally.status(majority) {
        Some(status) => Ok(status),
        // Free at a majority now, and gone from too few nodes to have been lost before.
        None if tally.answered() >= majority => Ok(LeaseStatus::Held),
        None => Err(tally.into_error(&store.nodes, "release")),
    }
}

/// Releases on all nodes, and waits for a majority that says the same. The other nodes get the release in the background.
pub(crate) async fn release_all(store: &Store, grant: &GrantRef) -> Tally {
    /// How long the release is sent again to a node that gives no answer.
    const PATIENCE: Duration = Duration::from_secs(10);
    store.attempts.end(grant.owner);
    let (names, owner, limit) = (store.namespace.of(&grant.key), grant.owner, store.node_limit);
    let mut answers = store.nodes.ask(|node| {
        let names = names.clone();
        async move { node.release(&names, owner, true, limit).await }
    });
    let (mut tally, mut unanswered) = (Tally::default(), store.nodes.indices());
    while tally.is_open(store.nodes.majority()) {
        let Some((index, answer)) = answers.next().await else { break };
        unanswered.remove(&index);
        tally.add(index, answer);
    }
    let pending = PendingRelease { owner, names, signal: true, until: store.clock.now().plus(PATIENCE), late: None };
    for (index, _) in tally.failed.iter().filter(|(_, failure)| failure.is_transient()) {
        store.pending_releases.add(*index, pending.clone());
    }
    if unanswered.is_empty() {
        return tally;
    }
    let (releases, repeated) = (Arc::clone(&store.pending_releases), pending.clone());
    let followed = store.background.run(async move {
        while let Some((index, answer)) = answers.next().await {
            if answer.is_err_and(|failure| failure.is_transient()) {
                releases.add(index, repeated.clone());
            }
        }
    });
    if !followed {
        for index in unanswered {
            store.pending_releases.add(index, pending.clone());
        }
    }
    tally
}
