use leasehold_core::{Attempt, Claim, GrantRef, Result};
use tokio_postgres::types::Type;

use crate::claims::texts;
use crate::reply::{column, epoch, micros, odd};
use crate::sessions::Step;
use crate::store::Store;

const DOWNGRADE: &str = "SELECT {schema}.downgrade($1, $2, $3, $4, $5, $6, $7)";

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
