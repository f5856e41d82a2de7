use std::time::Duration;

use leasehold_core::{Attempt, Claim, Error, ErrorKind, Result};
use leasehold_mysql::{Step, Value, micros, named};

use crate::store::Store;

/// The bit of the answer to a claim that says that the key is held. The other bits are then the microseconds that are
/// left of the lease.
const BUSY: u64 = 1 << 63;

/// Takes a key for the owner of `claim`, or answers for how long the lease in the way lasts.
pub(crate) async fn try_acquire(store: &Store, claim: &Claim) -> Result<Attempt> {
    let Some(queue) = &store.advisory_queue else { return ask_row(store, claim).await };
    if let Some(time) = queue.defer(claim) {
        return Ok(Attempt::Busy { retry_in: Some(time) });
    }
    let attempt = ask_row(store, claim).await?;
    queue.claimed(claim, attempt);
    Ok(attempt)
}

async fn ask_row(store: &Store, claim: &Claim) -> Result<Attempt> {
    let text = |text: Option<&str>| text.map_or(Value::NULL, |text| Value::Bytes(text.as_bytes().into()));
    let params = named([
        ("name", store.name(&claim.key)),
        ("owner", claim.owner.as_bytes().into()),
        ("ttl", micros(claim.ttl)),
        ("label", text(claim.label.as_deref())),
        ("reason", text(claim.reason.as_deref())),
    ]);
    let step = Step::new("acquire", &store.statements.try_acquire).repeatable();
    match store.sessions.run(step, params).await?.id {
        0 => Err(Error::new(ErrorKind::Indeterminate, "acquire").detail("the server's answer has no epoch in it")),
        busy if busy & BUSY != 0 => Ok(Attempt::Busy { retry_in: Some(Duration::from_micros(busy & !BUSY)) }),
        epoch => Ok(Attempt::Granted { epoch: Some(epoch) }),
    }
}
