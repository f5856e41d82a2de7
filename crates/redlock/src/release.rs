use std::time::Duration;

use leasehold_core::{GrantRef, LeaseStatus, Result};

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
    store.fleet.release(names, owner, store.clock.now().plus(PATIENCE), limit).await
}
