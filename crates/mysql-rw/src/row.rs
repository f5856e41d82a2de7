use std::time::Duration;

use leasehold_core::{Attempt, Error, ErrorKind, Result};
use leasehold_mysql::{Params, Reply, Sessions, Step, Value, named};

use crate::sql::Statements;

/// The bit of an answer that says that somebody is in the way. The other bits are then the microseconds that are left of
/// the lease, or zero if that is not known.
const BUSY: u64 = 1 << 63;

/// Runs a statement on the row of a key. If there is no row, it is created, and the statement runs again.
pub(crate) async fn run_on_row(
    sessions: &Sessions,
    statements: &Statements,
    statement: &str,
    name: &[u8],
    params: Params,
) -> Result<Reply> {
    let step = Step::new("acquire", statement).repeatable();
    let reply = sessions.run(step, params.clone()).await?;
    if reply.id != 0 {
        return Ok(reply);
    }
    let name = named([("name", Value::Bytes(name.to_vec()))]);
    sessions.run(Step::new("acquire", &statements.create_row).repeatable(), name).await?;
    sessions.run(step, params).await
}

/// Reads the answer of a statement on the row of a key, which is in the OK packet.
pub(crate) fn answer(reply: &Reply) -> Result<Attempt> {
    match reply.id {
        0 => Err(Error::new(ErrorKind::Indeterminate, "acquire").detail("the key's row is gone, or its answer")),
        BUSY => Ok(Attempt::Busy { retry_in: None }),
        busy if busy & BUSY != 0 => Ok(Attempt::Busy { retry_in: Some(Duration::from_micros(busy & !BUSY)) }),
        epoch => Ok(Attempt::Granted { epoch: Some(epoch) }),
    }
}
