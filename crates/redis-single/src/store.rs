use std::time::Duration;

use leasehold_core::{GrantRef, LeaseStatus, Result};
use leasehold_redis::Reply;

/// The parts of a key's names, see the README.
pub(crate) const LOCK: &str = "lock";
pub(crate) const FENCE: &str = "fence";
pub(crate) const QUEUE: &str = "queue";
pub(crate) const FORCED: &str = "forced";

/// What the scripts of acquiring and of releasing share: the queue of a key.
pub(crate) const QUEUE_LUA: &str = include_str!("lua/queue.lua");

/// What every step of this backend needs.
#[derive(Debug)]
pub(crate) struct Store {
    pub(crate) redis: leasehold_redis::Store,
    /// How long the counter of a key is kept after its last grant.
    pub(crate) fence_retention: Duration,
    /// Whether waiters queue in Redis.
    pub(crate) queues: bool,
}

impl Store {
    /// Reads what a script says of one grant: `held`, `gone`, or why it cannot be said.
    pub(crate) async fn lease_status(&self, answer: &Reply, grant: &GrantRef) -> Result<LeaseStatus> {
        let held = self.is_held(answer)?;
        Ok(if held { LeaseStatus::Held } else { self.why_not_held(grant).await })
    }

    /// Reads whether a script says `held`, and not `gone`.
    pub(crate) fn is_held(&self, answer: &Reply) -> Result<bool> {
        match *answer.words() {
            ["held", ..] => Ok(true),
            ["gone"] => Ok(false),
            ref words => Err(self.redis.script_error(words)),
        }
    }

    /// Asks apart from the script itself, so that the script touches one key only: a Cluster refuses scripts on several
    /// keys while a slot moves. If nobody answers, the grant is gone all the same.
    pub(crate) async fn why_not_held(&self, grant: &GrantRef) -> LeaseStatus {
        match self.redis.get(&self.redis.names(&grant.key).part(FORCED)).await {
            Ok(Some(owner)) if owner == grant.owner.to_hex() => LeaseStatus::ForceReleased,
            _ => LeaseStatus::NotHeld,
        }
    }
}
