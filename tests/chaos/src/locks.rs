//! The lockers under test.

use leasehold_core::Locks as Connected;
use leasehold_redis_reentrant::RedisReentrant;

/// A connected locker.
pub(crate) enum Locks {
    Shared(Connected),
    /// Each task has one of its own.
    Sessions(RedisReentrant),
}

impl Locks {
    pub(crate) fn of_task(&self) -> Connected {
        match self {
            Self::Shared(locks) => locks.clone(),
            Self::Sessions(locks) => Connected::exclusive(locks.session()),
        }
    }

    pub(crate) async fn close(&self) {
        match self {
            Self::Shared(locks) => locks.close().await,
            Self::Sessions(locks) => locks.close().await,
        }
    }
}
