use std::time::Duration;

use futures::future::join;
use leasehold_core::Waiters;
use leasehold_redis::{Confirmation, Connection, GroupCommit, Names, Namespace, Signals};

use crate::backend::STEPS;

/// What the sessions of one [`RedisReentrant`](crate::RedisReentrant) share.
#[derive(Debug)]
pub(crate) struct Store {
    pub(crate) connection: Connection,
    pub(crate) commits: GroupCommit,
    pub(crate) names: Names,
    /// Who waits for a key, through whichever session.
    pub(crate) waiters: Waiters,
    pub(crate) signals: Signals,
    pub(crate) fence_retention: Duration,
    pub(crate) max_depth: u32,
    pub(crate) confirmation: Option<Confirmation>,
}

impl Store {
    pub(crate) fn new(
        connection: Connection,
        namespace: &Namespace,
        retention: Duration,
        max_depth: u32,
        group_commit: bool,
    ) -> Self {
        let commits = GroupCommit::new(&connection, &STEPS, group_commit);
        let names = Names::new(namespace);
        let signals = Signals::new(&connection, &names);
        Self {
            connection,
            commits,
            names,
            waiters: Waiters::new(),
            signals,
            fence_retention: retention,
            max_depth,
            confirmation: None,
        }
    }

    pub(crate) async fn close(&self) {
        join(self.signals.close(), self.connection.close()).await;
    }
}
