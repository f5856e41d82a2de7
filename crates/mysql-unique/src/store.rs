use std::sync::Arc;

use leasehold_core::LockKey;
use leasehold_mysql::{AdvisoryQueue, Namespace, Sessions, Value};

use crate::sql::Statements;

/// The table of one backend: the connections, the names of its rows, the statements, and the queue of waiters.
#[derive(Clone, Debug)]
pub(crate) struct Store {
    pub(crate) sessions: Sessions,
    pub(crate) namespace: Namespace,
    pub(crate) statements: Arc<Statements>,
    pub(crate) advisory_queue: Option<AdvisoryQueue>,
}

impl Store {
    /// The name of a key's row, as a parameter.
    pub(crate) fn name(&self, key: &LockKey) -> Value {
        Value::Bytes(self.namespace.name_of(key))
    }
}
