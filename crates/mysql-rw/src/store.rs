use std::sync::Arc;
use std::time::Duration;

use leasehold_core::{Attempt, Error, ErrorKind, LockKey, OwnerId, Result};
use leasehold_mysql::{Namespace, Params, Reply, Sessions, Step, Value, named};

use crate::epochs::EpochAllocator;
use crate::sql::Statements;

/// The two tables of one backend: the connections, the names of the rows, the statements, and what the claims of this
/// process share.
#[derive(Clone, Debug)]
pub(crate) struct Store {
    pub(crate) sessions: Sessions,
    pub(crate) namespace: Namespace,
    pub(crate) statements: Arc<Statements>,
    /// Whose mark the mark of a waiting writer is. Its claims cannot say so, because each has another owner.
    pub(crate) client: OwnerId,
    pub(crate) epochs: Arc<EpochAllocator>,
}

/// The bit of an answer that says that somebody is in the way. The other bits are then the microseconds that are left of
/// the lease, or zero if that is not known.
const BUSY: u64 = 1 << 63;

impl Store {
    pub(crate) fn new(sessions: Sessions, namespace: Namespace, statements: Arc<Statements>) -> Self {
        Self { sessions, namespace, statements, client: OwnerId::random(), epochs: Arc::default() }
    }

    /// The name of a key's rows, as a parameter.
    pub(crate) fn name(&self, key: &LockKey) -> Value {
        Value::Bytes(self.namespace.name_of(key))
    }

    /// Runs a statement on the row of a key. If there is no row, it is created, and the statement runs again.
    pub(crate) async fn run_on_row(&self, statement: &str, key: &LockKey, params: Params) -> Result<Reply> {
        let step = Step::new("acquire", statement).repeatable();
        let reply = self.sessions.run(step, params.clone()).await?;
        if reply.id != 0 {
            return Ok(reply);
        }
        let name = named([("name", self.name(key))]);
        self.sessions.run(Step::new("acquire", &self.statements.create_row).repeatable(), name).await?;
        self.sessions.run(step, params).await
    }
}

/// A text, or NULL, as a parameter.
pub(crate) fn text(text: Option<&str>) -> Value {
    text.map_or(Value::NULL, |text| Value::Bytes(text.as_bytes().into()))
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
