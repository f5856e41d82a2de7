use leasehold_core::{Attempt, Claim, Error, ErrorKind, Mode, Result};
use leasehold_mysql::{Columns, Step, Value, micros, named};

use crate::readers::try_acquire_reader;
use crate::release::release_writer;
use crate::store::{Store, answer, text};

/// Takes a key for the owner of `claim`, as the writer or as a reader, or answers that somebody is in the way.
pub(crate) async fn try_acquire(store: &Store, claim: &Claim) -> Result<Attempt> {
    match claim.mode {
        Mode::Exclusive => try_acquire_writer(store, claim).await,
        Mode::Shared => try_acquire_reader(store, claim).await,
    }
}

/// Claims the key, so that no further reader is admitted. The writer is granted if no reader is left.
async fn try_acquire_writer(store: &Store, claim: &Claim) -> Result<Attempt> {
    let params = named([
        ("name", store.name(&claim.key)),
        ("owner", claim.owner.as_bytes().into()),
        ("client", store.client.as_bytes().into()),
        ("waits", Value::from(claim.waits)),
        ("ttl", micros(claim.ttl)),
        ("label", text(claim.label.as_deref())),
        ("reason", text(claim.reason.as_deref())),
    ]);
    let reply = store.run_on_row(&store.statements.try_acquire_writer, &claim.key, params).await?;
    match answer(&reply)? {
        busy @ Attempt::Busy { .. } => Ok(busy),
        granted => drain_or_give_up(store, claim, granted).await,
    }
}

/// Drains the readers. A claim whose drain failed would keep everybody out for the whole of its lease: it is released,
/// or, if that fails too, the outcome is reported as unknown, so that the engine releases the claim later.
async fn drain_or_give_up(store: &Store, claim: &Claim, granted: Attempt) -> Result<Attempt> {
    let failed = match drain(store, claim, granted).await {
        Ok(attempt) => return Ok(attempt),
        Err(failed) => failed,
    };
    match release_writer(store, &claim.grant(None)).await {
        Ok(_) => Err(failed),
        Err(_) => Err(Error::new(ErrorKind::Indeterminate, "acquire").detail(failed.to_string())),
    }
}

/// Looks for readers after a claim. Those whose lease ran out are deleted. If others are left, the claim becomes the mark
/// of a waiting writer, or is released if its owner does not wait.
async fn drain(store: &Store, claim: &Claim, granted: Attempt) -> Result<Attempt> {
    let mut left = count_readers(store, claim).await?;
    if left.as_ref().is_some_and(|left| left.expired > 0) {
        let params = named([("name", store.name(&claim.key))]);
        let step = Step::new("acquire", &store.statements.delete_expired_readers).repeatable();
        store.sessions.run(step, params).await?;
        left = count_readers(store, claim).await?;
    }
    match left {
        Some(ReadersLeft { readers: 0, .. }) => return Ok(granted),
        // This writer has lost its claim.
        None => {}
        Some(_) if claim.waits => {
            let params = named([
                ("name", store.name(&claim.key)),
                ("owner", claim.owner.as_bytes().into()),
                ("client", store.client.as_bytes().into()),
            ]);
            let step = Step::new("acquire", &store.statements.mark_waiting_writer).repeatable();
            store.sessions.run(step, params).await?;
        }
        Some(_) => {
            release_writer(store, &claim.grant(None)).await?;
        }
    }
    Ok(Attempt::Busy { retry_in: None })
}

/// The readers that a writer finds after its claim.
struct ReadersLeft {
    /// The readers that were not released by force, with those whose lease ran out.
    readers: u64,
    /// The rows whose lease ran out.
    expired: u64,
}

/// Counts the readers of a key. `None`: the writer has lost its claim.
async fn count_readers(store: &Store, claim: &Claim) -> Result<Option<ReadersLeft>> {
    let params = named([("name", store.name(&claim.key)), ("owner", claim.owner.as_bytes().into())]);
    let step = Step::new("acquire", &store.statements.count_readers).repeatable();
    let reply = store.sessions.run(step, params).await?;
    let Some(row) = reply.rows.first() else { return Ok(None) };
    let mut columns = Columns::of(row, "acquire");
    Ok(Some(ReadersLeft { readers: columns.number()?, expired: columns.number()? }))
}
