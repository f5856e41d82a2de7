pub(crate) use leasehold_redis::{FORCED, LOCK, QUEUE};

/// What the scripts of acquiring and of releasing share: the entry of a key.
pub(crate) const ENTRY_LUA: &str = include_str!("lua/entry.lua");

/// What every step of this backend needs.
#[derive(Debug)]
pub(crate) struct Store {
    pub(crate) redis: leasehold_redis::Store,
    /// Whether waiters queue in Redis.
    pub(crate) queues: bool,
}
