use std::time::Duration;

use futures::future::join_all;
use leasehold_core::{Attempt, Claim, Error, ErrorKind, GrantRef, LeaseStatus, OwnerId, Renewal, Result};
use tokio::time::{Instant, timeout_at};
use tokio_postgres::types::Type;

use crate::claims::texts;
use crate::failure::LOCKED;
use crate::reply::{column, epoch, micros, odd, only, status};
use crate::sessions::{LIMIT, Step};
use crate::store::Store;

const RENEW: &str = "SELECT * FROM {schema}.renew($1, $2, $3)";

const TAKE_OVER: &str = "SELECT {schema}.take_over($1, $2, $3, $4, $5)";

const DOWNGRADE: &str = "SELECT {schema}.downgrade($1, $2, $3, $4, $5, $6, $7)";

/// Renews leases by one statement, and answers for each whether it is still held. Those whose rows another session has locked
/// are then renewed each by itself, side by side: on the one connection of renewals each would wait for the others' rows.
pub(crate) async fn renew(store: &Store, renewals: &[Renewal], within: Duration) -> Vec<Result<LeaseStatus>> {
    let renewals: Vec<_> = renewals.iter().collect();
    let step = Step { reserved: true, limit: within.min(LIMIT), ..Step::new("renew", RENEW) };
    let end = Instant::now() + step.limit;
    let together = match renew_all(store, &renewals, step).await {
        Ok(together) => together,
        Err(failed) => return renewals.iter().map(|_| Err(failed.retell())).collect(),
    };
    let alone = Step { reserved: false, ..step };
    join_all(together.into_iter().zip(renewals).map(async |(answer, renewal)| match answer {
        Some(answer) => answer,
        None => match timeout_at(end, renew_all(store, &[renewal], alone)).await {
            Ok(answers) => only(answers?, "renew"),
            Err(_) => Err(Error::new(ErrorKind::Indeterminate, "renew").detail(LOCKED)),
        },
    }))
    .await
}

async fn renew_all(store: &Store, renewals: &[&Renewal], step: Step) -> Result<Vec<Option<Result<LeaseStatus>>>> {
    let names: Vec<Vec<u8>> = renewals.iter().map(|renewal| store.name_of(&renewal.grant.key)).collect();
    let owners: Vec<&[u8]> = renewals.iter().map(|renewal| renewal.grant.owner.as_bytes().as_slice()).collect();
    let ttls: Vec<i64> = renewals.iter().map(|renewal| micros(renewal.ttl)).collect();
    let params = [(&names as _, Type::BYTEA_ARRAY), (&owners as _, Type::BYTEA_ARRAY), (&ttls as _, Type::INT8_ARRAY)];
    store.sessions.run_each(step, &params, renewals.len(), |row| status(row, step.operation)).await
}

/// Gives a held key to a new owner, with a new lease.
pub(crate) async fn take_over(
    store: &Store,
    grant: &GrantRef,
    new_owner: OwnerId,
    ttl: Duration,
) -> Result<LeaseStatus> {
    let name = store.name_of(&grant.key);
    let epoch = grant.epoch.and_then(|epoch| i64::try_from(epoch).ok());
    let params = [
        (&name as _, Type::BYTEA),
        (&grant.owner.as_bytes().as_slice() as _, Type::BYTEA),
        (&epoch as _, Type::INT8),
        (&new_owner.as_bytes().as_slice() as _, Type::BYTEA),
        (&micros(ttl) as _, Type::INT8),
    ];
    let rows = store.sessions.run(Step::new("attach", TAKE_OVER), &params).await?;
    status(rows.first().ok_or_else(|| odd("attach"))?, "attach")?.ok_or_else(|| odd("attach"))
}

/// Makes a reader of a writer.
pub(crate) async fn downgrade(store: &Store, writer: &GrantRef, claim: &Claim) -> Result<Attempt> {
    let name = store.name_of(&claim.key);
    let written = writer.epoch.and_then(|epoch| i64::try_from(epoch).ok());
    let [label, reason] = texts(claim);
    let params = [
        (&name as _, Type::BYTEA),
        (&writer.owner.as_bytes().as_slice() as _, Type::BYTEA),
        (&written as _, Type::INT8),
        (&claim.owner.as_bytes().as_slice() as _, Type::BYTEA),
        (&micros(claim.ttl) as _, Type::INT8),
        (&label as _, Type::BYTEA),
        (&reason as _, Type::BYTEA),
    ];
    let rows = store.sessions.run(Step::new("downgrade", DOWNGRADE), &params).await?;
    let granted: Option<i64> = column(rows.first().ok_or_else(|| odd("downgrade"))?, 0, "downgrade")?;
    let Some(granted) = granted else { return Ok(Attempt::Busy { retry_in: None }) };
    Ok(Attempt::Granted { epoch: Some(epoch(granted, "downgrade")?) })
}
