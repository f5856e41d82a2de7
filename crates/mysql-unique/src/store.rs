use std::sync::Arc;

use leasehold_core::LockKey;
use leasehold_mysql::{AdvisoryQueue, GroupCommit, GroupedClaims, Namespace, Opened, Releases, Sessions, Turns, Value};

use crate::claims::Claims;
use crate::sql::Statements;

/// The table of one backend: the connections, the names of its rows, the statements, the queue of waiters, and the claims
/// and releases that are sent together.
#[derive(Clone, Debug)]
pub(crate) struct Store {
    pub(crate) sessions: Sessions,
    pub(crate) namespace: Namespace,
    pub(crate) statements: Arc<Statements>,
    pub(crate) advisory_queue: Option<AdvisoryQueue>,
    pub(crate) claims: Arc<GroupedClaims<Claims>>,
    pub(crate) releases: Arc<GroupCommit<Releases>>,
}

impl Store {
    pub(crate) fn new(opened: Opened) -> Self {
        let Opened { sessions, namespace, table, advisory_queue, group_commit } = opened;
        let statements = Arc::new(Statements::new(&table));
        let turns = Turns::default();
        let claims = Arc::new(GroupedClaims::new(Claims::new(&sessions, &statements), group_commit, &turns));
        let releases =
            Arc::new(GroupCommit::new(Releases::new(&sessions, statements.releases()), group_commit, &turns));
        Self { sessions, namespace, statements, advisory_queue, claims, releases }
    }

    /// The name of a key's row, as a parameter.
    pub(crate) fn name(&self, key: &LockKey) -> Value {
        Value::Bytes(self.namespace.name_of(key))
    }
}
