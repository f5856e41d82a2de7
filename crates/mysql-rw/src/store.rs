use std::sync::Arc;

use leasehold_core::LockKey;
use leasehold_mysql::{GroupCommit, GroupedClaims, Namespace, Opened, Releases, Sessions, TableName, Value};

use crate::claims::Claims;
use crate::epochs::EpochAllocator;
use crate::sql::Statements;

/// The two tables of one backend: the connections, the names of the rows, the statements, and what the claims of this
/// process share.
#[derive(Clone, Debug)]
pub(crate) struct Store {
    pub(crate) sessions: Sessions,
    pub(crate) namespace: Namespace,
    pub(crate) statements: Arc<Statements>,
    pub(crate) epochs: Arc<EpochAllocator>,
    /// The claims of writers.
    pub(crate) claims: Arc<GroupedClaims<Claims>>,
    /// The releases of writers.
    pub(crate) releases: Arc<GroupCommit<Releases>>,
}

impl Store {
    pub(crate) fn new(opened: Opened, readers: &TableName) -> Self {
        let Opened { sessions, namespace, table, group_commit, .. } = opened;
        let statements = Arc::new(Statements::new(&table, readers));
        let releases = Arc::new(GroupCommit::new(Releases::new(&sessions, statements.releases()), group_commit));
        let claims = Arc::new(GroupedClaims::new(Claims::new(&sessions, &statements, &releases), group_commit));
        Self { sessions, namespace, statements, epochs: Arc::default(), claims, releases }
    }

    /// The name of a key's rows, as a parameter.
    pub(crate) fn name(&self, key: &LockKey) -> Value {
        Value::Bytes(self.namespace.name_of(key))
    }
}
