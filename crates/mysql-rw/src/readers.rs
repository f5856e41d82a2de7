use leasehold_core::{Attempt, Claim, Clock, Error, ErrorKind, GrantRef, LeaseStatus, OwnerId, Result};
use leasehold_mysql::{BoxFuture, Step, Value, claim_params, micros, named};

use crate::row::{answer, run_on_row};
use crate::store::Store;

/// Draws an epoch, then adds the row of the reader, unless a writer holds the key.
///
/// The order matters because epochs have to grow: a claim that is made after this reader was admitted draws a later one.
pub(crate) async fn try_acquire_reader(store: &Store, claim: &Claim) -> Result<Attempt> {
    // A writer that came and went since the epoch was drawn has made it too small. A fresh one costs less than another
    // round of waiting.
    for _ in 0..2 {
        let draw = |count, waits| -> BoxFuture<'_, _> { Box::pin(draw_epochs(store, claim, count, waits)) };
        let attempt = match store.epochs.allocate(&claim.key, claim.waits, draw).await? {
            Attempt::Granted { epoch: Some(epoch) } => admit(store, claim, epoch).await?,
            busy => return Ok(busy),
        };
        if attempt != (Attempt::Busy { retry_in: None }) {
            return Ok(attempt);
        }
    }
    Ok(Attempt::Busy { retry_in: None })
}

/// Adds the row of a reader with this epoch.
async fn admit(store: &Store, claim: &Claim, epoch: u64) -> Result<Attempt> {
    let params = claim_params(store.namespace.name_of(&claim.key), claim);
    let params = named(params.into_iter().chain([("epoch", Value::UInt(epoch))]));
    let step = Step::new("acquire", &store.statements.try_acquire_reader).repeatable();
    let reply = store.sessions.run(step, params).await?;
    match reply.id {
        // A writer may have come since the first sending added the row.
        0 if reply.repeated => Err(Error::new(ErrorKind::Indeterminate, "acquire").detail("it was sent twice")),
        0 => Ok(Attempt::Busy { retry_in: None }),
        epoch => Ok(Attempt::Granted { epoch: Some(epoch) }),
    }
}

/// Draws `count` epochs for the readers of this process that ask for the key now, and answers the newest; or how long the
/// lease of the writer in the way lasts. `waits` says whether one of the readers waits.
async fn draw_epochs(store: &Store, claim: &Claim, count: u64, waits: bool) -> Result<Attempt> {
    let params = named([
        ("name", store.name(&claim.key)),
        ("count", Value::UInt(count)),
        ("waits", Value::from(waits)),
        ("away", micros(store.epochs.round_trip())),
    ]);
    let asked_at = Clock::system().now();
    let (statement, name) = (&store.statements.draw_epochs, store.namespace.name_of(&claim.key));
    let reply = run_on_row(&store.sessions, &store.statements, statement, &name, params).await?;
    store.epochs.note_round_trip(Clock::system().now().since(asked_at));
    answer(&reply)
}

/// Deletes the row of a reader, also if the reader has lost its lease.
pub(crate) async fn release_reader(store: &Store, name: Vec<u8>, owner: OwnerId) -> Result<LeaseStatus> {
    let params = named([("name", Value::Bytes(name.clone())), ("owner", owner.as_bytes().into())]);
    let step = Step::new("release", &store.statements.release_reader);
    if store.sessions.run(step, params.clone()).await?.affected > 0 {
        return Ok(LeaseStatus::Held);
    }
    let status = store.statements.readers().why_not_released(&store.sessions, name, owner).await?;
    store.sessions.run(Step::new("release", &store.statements.delete_reader).repeatable(), params).await?;
    Ok(status)
}

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
