pub(crate) use leasehold_redis::{FORCED, LOCK, QUEUE};
use leasehold_redis::{PROLONG, Script};

/// What the scripts of acquiring and of releasing share: the entry of a key.
pub(crate) const ENTRY_LUA: &str = include_str!("lua/entry.lua");

/// What every step of this backend needs.
#[derive(Debug)]
pub(crate) struct Store {
    pub(crate) redis: leasehold_redis::Store,
    /// Whether waiters queue in Redis.
    pub(crate) queues: bool,
}

pub(crate) static RENEW: Script = Script::new(&[PROLONG, include_str!("lua/renew.lua")]);
