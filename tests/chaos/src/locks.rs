//! The lockers under test.

use std::time::Duration;

use leasehold_core::{Locks as Connected, Result, Wait, connect_within};
use leasehold_redis_reentrant::RedisReentrant;

/// How long a store that is under a fault may take to accept a client.
const CONNECTS_WITHIN: Wait = Wait::UpTo(Duration::from_secs(30));

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

/// Connects, and tries again for a while where the store cannot be reached.
pub(crate) async fn patiently<T, F: Future<Output = Result<T>>>(connect: impl FnMut() -> F) -> Result<T> {
    connect_within(CONNECTS_WITHIN, connect).await
}
