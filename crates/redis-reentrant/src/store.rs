use leasehold_core::{GrantRef, LeaseStatus, Result, SessionId, Waiters};
use leasehold_redis::Reply;
pub(crate) use leasehold_redis::{FORCED, LOCK};

/// What the sessions of one [`RedisReentrant`](crate::RedisReentrant) share.
#[derive(Debug)]
pub(crate) struct Store {
    pub(crate) redis: leasehold_redis::Store,
    /// Who waits for a key, through any of the sessions.
    pub(crate) waiters: Waiters,
    /// How often one session may hold a key at the same time.
    pub(crate) max_depth: u32,
}

impl Store {
    pub(crate) fn new(redis: leasehold_redis::Store, max_depth: u32) -> Self {
        Self { redis, waiters: Waiters::new(), max_depth }
    }

    /// Reads what a script says of one grant of the session `id`: `held`, `gone`, or why it cannot be said.
    pub(crate) async fn lease_status(&self, id: &str, answer: &Reply, grant: &GrantRef) -> Result<LeaseStatus> {
        match *answer.words() {
            ["held", ..] => Ok(LeaseStatus::Held),
            ["gone"] => Ok(self.why_not_held(id, grant).await),
            ref words => Err(self.redis.script_error(words)),
        }
    }

    /// Asks apart from the script itself, so that the script touches one key only: a Cluster refuses scripts on several
    /// keys while a slot moves. If nobody answers, the grant is gone all the same.
    async fn why_not_held(&self, id: &str, grant: &GrantRef) -> LeaseStatus {
        match self.redis.get(&self.redis.names(&grant.key).part(FORCED)).await {
            Ok(Some(whose)) if whose == format!("{} {id}", epoch_argument(grant)) => LeaseStatus::ForceReleased,
            _ => LeaseStatus::NotHeld,
        }
    }
}

/// The epoch of a grant as scripts take it; empty if it is not known.
pub(crate) fn epoch_argument(grant: &GrantRef) -> String {
    grant.epoch.map(|epoch| epoch.to_string()).unwrap_or_default()
}

/// The public id of a session: the first 16 digits of the digest of its secret id. `None`: the text is no digest.
pub(crate) fn session_id(digest: &str) -> Option<SessionId> {
    u64::from_str_radix(digest.get(..16)?, 16).ok().map(SessionId)
}
