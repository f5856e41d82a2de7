use std::time::Duration;

use futures::future::join_all;
use leasehold_core::{Error, ErrorKind, GrantRef, LeaseStatus, OwnerId, Renewal, Result};
use leasehold_redis::{Script, ScriptArguments, millis};

use crate::store::{LOCK, Store};

static RENEW: Script = Script::new(include_str!("lua/renew.lua"));
static TAKE_OVER: Script = Script::new(include_str!("lua/take_over.lua"));

/// Prolongs grants, each only if the server still has its owner under its epoch.
pub(crate) async fn renew(store: &Store, renewals: &[Renewal], within: Duration) -> Vec<Result<LeaseStatus>> {
    let batches = renewals.chunks(store.connection.keys_in_a_script());
    let answers =
        join_all(batches.map(|batch| renew_batch(store, batch, within))).await.into_iter().flatten().collect();
    let Some(confirmation) = store.confirmation else { return answers };
    let names = renewals.iter().map(|renewal| store.names.of(&renewal.grant.key).part(LOCK)).collect();
    confirmation.confirm_renewals(within, &store.connection, names, answers).await
}

/// Renews grants that may share a script.
async fn renew_batch(store: &Store, renewals: &[Renewal], within: Duration) -> Vec<Result<LeaseStatus>> {
    let locks = renewals.iter().map(|renewal| store.names.of(&renewal.grant.key));
    let words = locks.fold(ScriptArguments::new(), |words, names| words.name(&names, LOCK));
    let number = |grant: &GrantRef| grant.epoch.unwrap_or_default();
    let leases = renewals.iter().map(|renewal| (renewal.grant.owner, number(&renewal.grant), renewal.ttl));
    let words = words.leases(leases);
    match store.connection.ask(&RENEW, renewals.len(), words, Some(within)).await {
        Ok(reply) if *reply.words() == ["held"] => renewals.iter().map(|_| Ok(LeaseStatus::Held)).collect(),
        Ok(reply) => {
            let answers = reply.each_of(renewals.len());
            let statuses =
                answers.iter().zip(renewals).map(|(answer, renewal)| store.lease_status(answer, &renewal.grant));
            join_all(statuses).await
        }
        Err(error) => renewals.iter().map(|_| Err(error.retell())).collect(),
    }
}

/// Gives a grant to `new_owner` and prolongs it to `ttl`, if the server still has its owner under its epoch.
pub(crate) async fn take_over(
    store: &Store,
    grant: &GrantRef,
    new_owner: OwnerId,
    ttl: Duration,
) -> Result<LeaseStatus> {
    let lock = store.names.of(&grant.key).part(LOCK);
    let epoch = grant.epoch.map_or_else(|| "-".to_owned(), |epoch| epoch.to_string());
    let arguments = [grant.owner.to_hex(), epoch, new_owner.to_hex(), millis(ttl)];
    let reply = store.connection.run(&TAKE_OVER, [lock.clone()], arguments, None).await?;
    let status = store.lease_status(&reply, grant).await;
    let Some(confirmation) = store.confirmation else { return status };
    let confirmed = confirmation.confirm_renewals(ttl, &store.connection, vec![lock], vec![status]).await.pop();
    // A replica that does not have it would let the old owner go on, or be taken over once more.
    let unknown = |error| Error::new(ErrorKind::Indeterminate, "attach").caused_by(error);
    confirmed.unwrap_or(Ok(LeaseStatus::NotHeld)).map_err(unknown)
}
