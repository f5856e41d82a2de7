use std::time::Duration;

pub(crate) use leasehold_redis::{FORCED, LOCK, QUEUE};

/// The counter of a key: the other parts of its names are those of every backend with a queue.
pub(crate) const FENCE: &str = "fence";

/// What the scripts of acquiring and of releasing share: the entry of a key.
pub(crate) const ENTRY_LUA: &str = include_str!("lua/entry.lua");

/// What every step of this backend needs.
#[derive(Debug)]
pub(crate) struct Store {
    pub(crate) redis: leasehold_redis::Store,
    /// How long the counter of a key is kept after its last grant.
    pub(crate) fence_retention: Duration,
    /// Whether waiters queue in Redis.
    pub(crate) queues: bool,
}
