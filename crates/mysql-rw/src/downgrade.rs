use leasehold_core::{Attempt, Claim, GrantRef, Result};
use leasehold_mysql::{Step, Value, micros, named, text};

use crate::store::Store;

/// Makes a reader of a writer. Draws an epoch and adds a row for the reader, which holds nothing yet; then one statement frees the
/// key and gives the reader its lease.
pub(crate) async fn downgrade(store: &Store, writer: &GrantRef, claim: &Claim) -> Result<Attempt> {
    let lost = Ok(Attempt::Busy { retry_in: None });
    let Some(written) = writer.epoch else { return lost };
    let (name, owner) = (("name", store.name(&claim.key)), ("owner", claim.owner.as_bytes().into()));
    let ttl = ("ttl", micros(claim.ttl));
    let writer = ("writer", Value::from(writer.owner.as_bytes()));
    let step = |statement| Step::new("downgrade", statement);
    let params = named([name.clone(), writer.clone(), ("written", Value::UInt(written))]);
    let epoch = store.sessions.run(step(&store.statements.downgrade_epoch).repeatable(), params).await?.id;
    if epoch == 0 {
        return lost;
    }
    let (label, reason) = (text(claim.label.as_deref()), text(claim.reason.as_deref()));
    let params = named([
        name.clone(),
        owner.clone(),
        ("epoch", Value::UInt(epoch)),
        ttl.clone(),
        ("label", label),
        ("reason", reason),
    ]);
    store.sessions.run(step(&store.statements.downgrade_reader).repeatable(), params).await?;
    let params = named([name, writer, owner, ttl]);
    match store.sessions.run(step(&store.statements.downgrade), params).await?.affected {
        0 => lost,
        _ => Ok(Attempt::Granted { epoch: Some(epoch) }),
    }
}
