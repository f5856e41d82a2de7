use std::ops::Range;
use std::time::Duration;

use futures::future::join_all;
use leasehold_core::{LeaseStatus, Renewal, Result};
use leasehold_redis::{PROLONG, Script, ScriptArguments};

use crate::store::{LOCK, Store, epoch_argument};

pub(crate) static RENEW: Script = Script::new(&[PROLONG, include_str!("lua/renew.lua")]);

/// Prolongs leases of the session `id`, each only if the session still holds the key in the same epoch.
pub(crate) async fn renew(store: &Store, id: &str, renewals: &[Renewal], within: Duration) -> Vec<Result<LeaseStatus>> {
    let arguments = |range: Range<usize>| renew_arguments(store, id, &renewals[range]);
    let answers = store.redis.run_for_each(&RENEW, renewals.len(), &arguments, Some(within)).await;
    let answers = answers.into_iter().zip(renewals);
    let statuses = answers.map(async |(answer, renewal)| store.lease_status(id, &answer?, &renewal.grant).await);
    let statuses = join_all(statuses).await;
    store.redis.confirm_renewals(within, renewals.iter().map(|renewal| &renewal.grant), statuses).await
}

/// The locks, the session, and the epoch and the lease in ms of each grant.
pub(crate) fn renew_arguments(store: &Store, id: &str, renewals: &[Renewal]) -> ScriptArguments {
    let locks = renewals.iter().map(|renewal| store.redis.names(&renewal.grant.key));
    let arguments = locks.fold(ScriptArguments::default(), |arguments, names| arguments.name(&names, LOCK)).text(id);
    renewals.iter().fold(arguments, |arguments, renewal| {
        arguments.text(epoch_argument(&renewal.grant)).text(renewal.ttl.as_millis())
    })
}
