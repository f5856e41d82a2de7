use std::fmt::Write;
use std::ops::Range;
use std::time::Duration;

use futures::future::join_all;
use leasehold_core::{Error, ErrorKind, GrantRef, LeaseStatus, OwnerId, Renewal, Result};
use leasehold_redis::{PROLONG, REWRITE, Script, ScriptArguments};

use crate::store::{LOCK, Store};

static RENEW: Script = Script::new(&[PROLONG, include_str!("lua/renew.lua")]);
static TAKE_OVER: Script = Script::new(&[REWRITE, include_str!("lua/take_over.lua")]);

/// Prolongs grants, each only if the server still has its owner under its epoch.
pub(crate) async fn renew(store: &Store, renewals: &[Renewal], within: Duration) -> Vec<Result<LeaseStatus>> {
    let arguments = |range: Range<usize>| renew_arguments(store, &renewals[range]);
    let answers = store.redis.run_for_each(&RENEW, renewals.len(), &arguments, Some(within)).await;
    let held = answers.into_iter().map(|answer| store.is_held(&answer?));
    let status = |held| if held { LeaseStatus::Held } else { LeaseStatus::NotHeld };
    let mut statuses: Vec<_> = held.map(|held| held.map(status)).collect();
    // Few are gone, if any.
    let gone = statuses.iter_mut().zip(renewals).filter(|(status, _)| matches!(status, Ok(LeaseStatus::NotHeld)));
    join_all(gone.map(async |(status, renewal)| *status = Ok(store.why_not_held(&renewal.grant).await))).await;
    if !store.redis.awaits_replicas() {
        return statuses;
    }
    let names = renewals.iter().map(|renewal| store.redis.names(&renewal.grant.key).part(LOCK)).collect();
    store.redis.confirm_renewals(within, names, statuses).await
}

/// The locks, and in one text the owner id, the epoch and the lease in ms of each.
fn renew_arguments(store: &Store, renewals: &[Renewal]) -> ScriptArguments {
    let (mut arguments, mut grants) = (ScriptArguments::default(), String::new());
    for Renewal { grant, ttl } in renewals {
        arguments = arguments.name(&store.redis.names(&grant.key), LOCK);
        // Writing to a string does not fail.
        let _ = write!(grants, "{} {} {} ", grant.owner.to_hex(), grant.epoch.unwrap_or_default(), ttl.as_millis());
    }
    arguments.text(grants)
}

/// Gives a grant to `new_owner` and prolongs it to `ttl`, if the server still has its owner under its epoch.
pub(crate) async fn take_over(
    store: &Store,
    grant: &GrantRef,
    new_owner: OwnerId,
    ttl: Duration,
) -> Result<LeaseStatus> {
    let lock = store.redis.names(&grant.key).part(LOCK);
    let epoch = grant.epoch.map_or_else(|| "-".to_owned(), |epoch| epoch.to_string());
    let arguments = ScriptArguments::default().text(&lock).text(grant.owner.to_hex()).text(epoch);
    let arguments = arguments.text(new_owner.to_hex()).text(ttl.as_millis());
    let reply = store.redis.run(&TAKE_OVER, 1, arguments, None).await?;
    let status = store.lease_status(&reply, grant).await;
    if !store.redis.awaits_replicas() {
        return status;
    }
    let confirmed = store.redis.confirm_renewals(ttl, vec![lock], vec![status]).await.pop();
    // A replica that does not have it would let the old owner go on, or be taken over once more.
    let unknown = |error| Error::new(ErrorKind::Indeterminate, "attach").caused_by(error);
    confirmed.unwrap_or(Ok(LeaseStatus::NotHeld)).map_err(unknown)
}
