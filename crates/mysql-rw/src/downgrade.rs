use leasehold_core::{Attempt, Claim, GrantRef, Result};
use leasehold_mysql::{Step, Value, claim_params, named};

use crate::store::Store;

/// Makes a reader of a writer. Draws an epoch and adds a row for the reader, which holds nothing yet; then one statement frees the
/// key and gives the reader its lease.
pub(crate) async fn downgrade(store: &Store, writer: &GrantRef, claim: &Claim) -> Result<Attempt> {
    let lost = Ok(Attempt::Busy { retry_in: None });
    let Some(written) = writer.epoch else { return lost };
    let reader = claim_params(store.namespace.name_of(&claim.key), claim);
    let writer = ("writer", Value::from(writer.owner.as_bytes()));
    let step = |statement| Step::new("downgrade", statement);
    let params = named([reader[0].clone(), writer.clone(), ("written", Value::UInt(written))]);
    let epoch = store.sessions.run(step(&store.statements.downgrade_epoch).repeatable(), params).await?.id;
    if epoch == 0 {
        return lost;
    }
    let params = named(reader.clone().into_iter().chain([("epoch", Value::UInt(epoch))]));
    store.sessions.run(step(&store.statements.downgrade_reader).repeatable(), params).await?;
    let [name, owner, ttl, ..] = reader;
    let params = named([name, owner, ttl, writer]);
    match store.sessions.run(step(&store.statements.downgrade), params).await?.affected {
        0 => lost,
        _ => Ok(Attempt::Granted { epoch: Some(epoch) }),
    }
}
