use std::time::Duration;

use leasehold_core::{GrantRef, LeaseStatus, OwnerId, Renewal, Result};

use crate::store::Store;

/// Renews leases in batches, and answers for each whether it is still held.
pub(crate) async fn renew(store: &Store, renewals: &[Renewal], within: Duration) -> Vec<Result<LeaseStatus>> {
    let lease = |renewal: &Renewal| (store.namespace.name_of(&renewal.grant.key), renewal.grant.owner, renewal.ttl);
    let leases = renewals.iter().map(lease).collect();
    let answers = store.statements.leases().renew(&store.sessions, leases, within).await;
    if let Some(queue) = &store.advisory_queue {
        renewals.iter().zip(&answers).for_each(|(renewal, answer)| queue.renewed(renewal, answer));
    }
    answers
}

/// Gives a held key to a new owner, with a new lease.
pub(crate) async fn take_over(
    store: &Store,
    grant: &GrantRef,
    new_owner: OwnerId,
    ttl: Duration,
) -> Result<LeaseStatus> {
    let name = store.namespace.name_of(&grant.key);
    store.statements.leases().take_over(&store.sessions, name, grant, new_owner, ttl).await
}
