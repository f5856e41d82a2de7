use std::time::Duration;

use leasehold_core::{GrantRef, LeaseStatus, Mode, OwnerId, Renewal, Result};

use crate::store::Store;

/// Renews leases in batches, those of writers and those of readers apart, and answers for each whether it is still held.
pub(crate) async fn renew(store: &Store, renewals: &[Renewal], within: Duration) -> Vec<Result<LeaseStatus>> {
    let is_writer = |renewal: &Renewal| renewal.grant.mode == Mode::Exclusive;
    let leases = |writers: bool| -> Vec<_> {
        let these = renewals.iter().filter(|renewal| is_writer(renewal) == writers);
        these.map(|renewal| (store.namespace.name_of(&renewal.grant.key), renewal.grant.owner, renewal.ttl)).collect()
    };
    let mut writers = store.statements.writers().renew(&store.sessions, leases(true), within).await.into_iter();
    let mut readers = store.statements.readers().renew(&store.sessions, leases(false), within).await.into_iter();
    let answer = |renewal| if is_writer(renewal) { writers.next() } else { readers.next() };
    renewals.iter().map(answer).map(|answer| answer.unwrap_or(Ok(LeaseStatus::NotHeld))).collect()
}

/// Gives the grant of a writer or a reader to a new owner, with a new lease.
pub(crate) async fn take_over(
    store: &Store,
    grant: &GrantRef,
    new_owner: OwnerId,
    ttl: Duration,
) -> Result<LeaseStatus> {
    let leases = match grant.mode {
        Mode::Exclusive => store.statements.writers(),
        Mode::Shared => store.statements.readers(),
    };
    leases.take_over(&store.sessions, store.namespace.name_of(&grant.key), grant, new_owner, ttl).await
}
