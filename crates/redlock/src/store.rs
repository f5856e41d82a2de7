use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use leasehold_core::Clock;
use leasehold_redis::Namespace;

use crate::attempt::AttemptsInFlight;
use crate::background_tasks::BackgroundTasks;
use crate::fleet::Fleet;
use crate::nodes::{Answers, Nodes};
use crate::pending_releases::PendingReleases;

/// What every operation of this backend needs: the nodes, the names, the settings, and what goes on in the background.
#[derive(Debug)]
pub(crate) struct Store {
    pub(crate) nodes: Arc<Nodes>,
    pub(crate) namespace: Namespace,
    /// Whether grants carry tokens.
    pub(crate) fencing: bool,
    /// How much longer than the guard believes the nodes keep a lease.
    pub(crate) drift: Duration,
    /// How long one node may take for an answer.
    pub(crate) node_limit: Duration,
    /// How long a command may take at most: a second, or the limit of a node where that is longer.
    pub(crate) command_timeout: Duration,
    pub(crate) clock: Clock,
    pub(crate) attempts: Arc<AttemptsInFlight>,
    pub(crate) background: Arc<BackgroundTasks>,
    pub(crate) fleet: Fleet,
    pub(crate) pending_releases: Arc<PendingReleases>,
}

impl Store {
    /// How long one node may take for an answer about a lease of `ttl`: far less than the lease, and of a short one so much
    /// that two rounds fit in.
    pub(crate) fn limit(&self, ttl: Duration) -> Duration {
        let of_a_short_lease = (ttl / 3).min(Duration::from_millis(100));
        (ttl / 10).max(of_a_short_lease).min(self.node_limit)
    }

    /// Waits for the other answers in the background: a node that stays silent is noticed, and connected again.
    pub(crate) fn await_rest<T: Send + 'static>(&self, mut answers: Answers<T>) {
        if !answers.is_empty() {
            self.background.run(async move { while answers.next().await.is_some() {} });
        }
    }
}
