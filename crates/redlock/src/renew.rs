use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use futures::future::join_all;
use leasehold_core::{Error, ErrorKind, GrantRef, LeaseStatus, OwnerId, Renewal, Result};
use leasehold_redis::KeyNames;
use tokio::time::timeout;

use crate::release::release_all;
use crate::store::Store;
use crate::tally::Tally;

/// Prolongs grants on all nodes. A grant is held, or not held, if a majority says so.
pub(crate) async fn renew(store: &Store, renewals: &[Renewal], within: Duration) -> Vec<Result<LeaseStatus>> {
    let majority = store.nodes.majority();
    let tallies = renew_all(store, renewals, within).await;
    let gone = tallies.iter().zip(renewals).filter(|(tally, _)| tally.is_gone(majority));
    // The few nodes that still had the grant have prolonged it, or will, and would be blocked for as long.
    let give_back = join_all(gone.map(|(_, renewal)| release_all(store, &renewal.grant)));
    let _ = timeout(store.node_limit.min(within / 2), give_back).await;
    let status = |tally: Tally| tally.status(majority).ok_or_else(|| tally.into_error(&store.nodes, "renew"));
    tallies.into_iter().map(status).collect()
}

/// Waits for a majority that says the same of each grant, and no longer than the limit for the rest.
async fn renew_all(store: &Store, renewals: &[Renewal], within: Duration) -> Vec<Tally> {
    let grants: Arc<[(KeyNames, OwnerId, Duration)]> = renewals
        .iter()
        .map(|renewal| (store.namespace.of(&renewal.grant.key), renewal.grant.owner, renewal.ttl + store.drift))
        .collect();
    let shortest = renewals.iter().map(|renewal| renewal.ttl).min().unwrap_or_default();
    let limit = store.limit(shortest).max(within.min(Duration::from_secs(1)));
    let mut answers = store.nodes.ask(|node| {
        let grants = Arc::clone(&grants);
        async move { node.renew(&grants, limit).await }
    });
    let mut tallies: Vec<Tally> = renewals.iter().map(|_| Tally::default()).collect();
    while tallies.iter().any(|tally| tally.is_open(store.nodes.majority())) {
        let Some((index, answer)) = answers.next().await else { break };
        match answer {
            Ok(statuses) => tallies.iter_mut().zip(statuses).for_each(|(tally, status)| tally.add(index, status)),
            Err(failure) => tallies.iter_mut().for_each(|tally| tally.add(index, Err(failure.clone()))),
        }
    }
    store.await_rest(answers);
    tallies
}

/// Gives a grant to `new_owner` on all nodes and prolongs it to `ttl`. Waits for a majority that says the same, and succeeds
/// if that has the new owner.
pub(crate) async fn take_over(
    store: &Store,
    grant: &GrantRef,
    new_owner: OwnerId,
    ttl: Duration,
) -> Result<LeaseStatus> {
    let (majority, lease, limit) = (store.nodes.majority(), ttl + store.drift, store.limit(ttl));
    let mut answers = store.nodes.ask(|node| {
        let grant = grant.clone();
        async move { node.take_over(&grant, new_owner, lease, limit).await }
    });
    let mut tally = Tally::default();
    while tally.is_open(majority) {
        let Some((index, answer)) = answers.next().await else { break };
        tally.add(index, answer);
    }
    store.await_rest(answers);
    if tally.is_gone(majority) {
        // The few nodes that have the new owner, or get it yet, would be blocked for a lease.
        release_all(store, &GrantRef { owner: new_owner, ..grant.clone() }).await;
    }
    tally.status(majority).ok_or_else(|| {
        let some_have_it = tally.held > 0;
        let error = tally.into_error(&store.nodes, "attach");
        // Where some nodes have the new owner, the engine releases it.
        let unknown = Error::new(ErrorKind::Indeterminate, "attach");
        if some_have_it { unknown.caused_by(error) } else { error }
    })
}
