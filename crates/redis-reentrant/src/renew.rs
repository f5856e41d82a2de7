use std::iter::once;
use std::time::Duration;

use futures::future::join_all;
use leasehold_core::{LeaseStatus, Renewal, Result};
use leasehold_redis::{Script, millis};

use crate::store::{LOCK, Store, epoch_argument};

static RENEW: Script = Script::new(include_str!("lua/renew.lua"));

/// Prolongs leases of the session `id`, each only if the session still holds the key in the same epoch.
pub(crate) async fn renew(store: &Store, id: &str, renewals: &[Renewal], within: Duration) -> Vec<Result<LeaseStatus>> {
    let batches = renewals.chunks(store.connection.keys_in_a_script());
    let answers =
        join_all(batches.map(|batch| renew_batch(store, id, batch, within))).await.into_iter().flatten().collect();
    let Some(confirmation) = store.confirmation else { return answers };
    let names = renewals.iter().map(|renewal| store.names.of(&renewal.grant.key).part(LOCK)).collect();
    confirmation.confirm_renewals(within, &store.connection, names, answers).await
}

/// Renews grants that may share a script.
async fn renew_batch(store: &Store, id: &str, renewals: &[Renewal], within: Duration) -> Vec<Result<LeaseStatus>> {
    let locks = renewals.iter().map(|renewal| store.names.of(&renewal.grant.key).part(LOCK));
    let each = renewals.iter().flat_map(|renewal| [epoch_argument(&renewal.grant), millis(renewal.ttl)]);
    let arguments = once(id.to_owned()).chain(each);
    match store.connection.run(&RENEW, locks, arguments, Some(within)).await {
        Ok(reply) => {
            let answers = reply.each_of(renewals.len());
            let statuses =
                answers.iter().zip(renewals).map(|(answer, renewal)| store.lease_status(id, answer, &renewal.grant));
            join_all(statuses).await
        }
        Err(error) => renewals.iter().map(|_| Err(error.retell())).collect(),
    }
}
