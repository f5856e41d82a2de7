//! The lockers under test.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use leasehold_core::{Admin, Backed, Locker, Memory, Result, RwLocker, SharedBackend, Wait, connect_within};
use leasehold_redis_reentrant::RedisReentrant;

/// How long a store that is under a fault may take to accept a client.
const CONNECTS_WITHIN: Wait = Wait::UpTo(Duration::from_secs(30));

/// A connected locker.
pub(crate) enum Locks {
    Exclusive { locker: Arc<dyn Locker>, admin: Arc<dyn Admin>, closing: Closing },
    Shared { locker: Arc<dyn RwLocker>, admin: Arc<dyn Admin>, closing: Closing },
    Sessions(RedisReentrant),
    AlwaysGrants,
}

type Closing = Arc<dyn Fn() -> Pin<Box<dyn Future<Output = ()> + Send>> + Send + Sync>;

/// What one task uses: a session of its own where there are sessions.
#[derive(Clone)]
pub(crate) struct TaskLocks {
    pub(crate) locker: Arc<dyn Locker>,
    pub(crate) readers: Option<Arc<dyn RwLocker>>,
    pub(crate) admin: Arc<dyn Admin>,
}

impl Locks {
    pub(crate) fn exclusive<T: Backed + 'static>(locks: T) -> Self {
        let locks = Arc::new(locks);
        Self::Exclusive { locker: locks.clone(), admin: locks.clone(), closing: closing(locks) }
    }

    pub(crate) fn shared<T: Backed<Backend: SharedBackend> + 'static>(locks: T) -> Self {
        let locks = Arc::new(locks);
        Self::Shared { locker: locks.clone(), admin: locks.clone(), closing: closing(locks) }
    }

    pub(crate) fn of_task(&self) -> TaskLocks {
        match self {
            Self::Exclusive { locker, admin, .. } => {
                TaskLocks { locker: locker.clone(), readers: None, admin: admin.clone() }
            }
            Self::Shared { locker, admin, .. } => {
                TaskLocks { locker: Arc::new(locker.clone()), readers: Some(locker.clone()), admin: admin.clone() }
            }
            Self::Sessions(locks) => {
                let session = Arc::new(locks.session());
                TaskLocks { locker: session.clone(), readers: None, admin: session }
            }
            Self::AlwaysGrants => {
                let memory = Arc::new(Memory::new());
                TaskLocks { locker: memory.clone(), readers: None, admin: memory }
            }
        }
    }

    pub(crate) async fn close(&self) {
        match self {
            Self::Exclusive { closing, .. } | Self::Shared { closing, .. } => closing().await,
            Self::Sessions(locks) => locks.close().await,
            Self::AlwaysGrants => {}
        }
    }
}

fn closing<T: Backed + 'static>(locks: Arc<T>) -> Closing {
    Arc::new(move || {
        let engine = locks.engine().clone();
        Box::pin(async move { engine.close().await })
    })
}

/// Connects, and tries again for a while where the store cannot be reached.
pub(crate) async fn patiently<T, F: Future<Output = Result<T>>>(connect: impl FnMut() -> F) -> Result<T> {
    connect_within(CONNECTS_WITHIN, connect).await
}
