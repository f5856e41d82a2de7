use std::time::Duration;

use leasehold_core::{GrantRef, LeaseStatus, Result};
use leasehold_redis::{Confirmation, Connection, GroupCommit, Names, PubSub, Reply, script_error};

/// The parts of a key's names, see the README.
pub(crate) const LOCK: &str = "lock";
pub(crate) const FENCE: &str = "fence";
pub(crate) const QUEUE: &str = "line";
pub(crate) const FORCED: &str = "forced";

/// What the scripts of acquiring and of releasing share: the queue of a key.
pub(crate) const QUEUE_LUA: &str = include_str!("lua/queue.lua");

/// What every step of this backend needs: the connection, the names, and the settings.
#[derive(Debug)]
pub(crate) struct Store {
    pub(crate) connection: Connection,
    pub(crate) commits: GroupCommit,
    pub(crate) names: Names,
    pub(crate) signals: PubSub,
    /// How long the counter of a key is kept after its last grant.
    pub(crate) fence_retention: Duration,
    pub(crate) confirmation: Option<Confirmation>,
    /// Whether waiters queue in Redis.
    pub(crate) queues: bool,
}

impl Store {
    /// Reads what a script says of one grant: `held`, `gone`, or why it cannot be said.
    pub(crate) async fn lease_status(&self, answer: &Reply, grant: &GrantRef) -> Result<LeaseStatus> {
        match *answer.words() {
            ["held", ..] => Ok(LeaseStatus::Held),
            ["gone"] => Ok(self.why_not_held(grant).await),
            ref words => Err(script_error(&self.connection, words)),
        }
    }

    /// Asks apart from the script itself, so that the script touches one key only: a Cluster refuses scripts on several
    /// keys while a slot moves. If nobody answers, the grant is gone all the same.
    async fn why_not_held(&self, grant: &GrantRef) -> LeaseStatus {
        match Box::pin(self.connection.get(&self.names.of(&grant.key).part(FORCED))).await {
            Ok(Some(owner)) if owner == grant.owner.to_hex() => LeaseStatus::ForceReleased,
            _ => LeaseStatus::NotHeld,
        }
    }
}
