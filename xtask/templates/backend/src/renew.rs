use std::time::Duration;

use leasehold_core::{GrantRef, LeaseStatus, Renewal, Result};

use crate::store::Store;

/// Renews leases, and answers for each in its place.
pub(crate) async fn renew(store: &Store, renewals: &[Renewal], _within: Duration) -> Vec<Result<LeaseStatus>> {
    // The engine does not use an answer that comes later than `within`. Requests that wait for each other take too long: a
    // batch has up to 250. Send them in one round trip, or all at once.
    let mut answers = Vec::with_capacity(renewals.len());
    for renewal in renewals {
        answers.push(renew_one(store, &renewal.grant, renewal.ttl).await);
    }
    answers
}

/// Prolongs one lease.
///
/// One atomic step: if the entry has `grant.owner` and `grant.epoch`, and its lease has not ended, the lease ends `ttl` from now by
/// the store's clock, or when it ended before if that is later, and the answer is [`LeaseStatus::Held`]. Else nothing is changed,
/// also where nobody took the key since, and the answer is [`LeaseStatus::NotHeld`].
async fn renew_one(store: &Store, grant: &GrantRef, _ttl: Duration) -> Result<LeaseStatus> {
    store.not_written("renew", grant.key.as_str()).await
}
