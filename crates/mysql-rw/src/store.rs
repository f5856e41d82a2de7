use std::sync::Arc;

use leasehold_core::LockKey;
use leasehold_mysql::{GroupCommit, GroupedClaims, Namespace, Opened, Releases, Sessions, TableName, Turns, Value};

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
        // Apart from each other: a batch of claims may wait for a release.
        let [for_claims, for_releases] = [Turns::default(), Turns::default()];
        let releases = Releases::new(&sessions, statements.releases());
        let releases = Arc::new(GroupCommit::new(releases, group_commit, &for_releases));
        let claims = Claims::new(&sessions, &statements, &releases);
        let claims = Arc::new(GroupedClaims::new(claims, group_commit, &for_claims));
        Self { sessions, namespace, statements, epochs: Arc::default(), claims, releases }
    }

    /// The name of a key's rows, as a parameter.
    pub(crate) fn name(&self, key: &LockKey) -> Value {
        Value::Bytes(self.namespace.name_of(key))
    }
}
