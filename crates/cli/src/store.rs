use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use leasehold_core::{Admin, Backed, Locker, RwLocker, SharedBackend};

/// A connected store, as the traits that the commands use.
pub(crate) struct Store {
    pub(crate) locker: Arc<dyn Locker>,
    /// `None` if the store grants no shared locks.
    pub(crate) readers: Option<Arc<dyn RwLocker>>,
    pub(crate) admin: Arc<dyn Admin>,
    closing: Pin<Box<dyn Future<Output = ()>>>,
}

impl Store {
    /// Wraps a locker that grants exclusive locks only.
    #[allow(dead_code, reason = "used or not, as the features say")]
    pub(crate) fn exclusive<T: Backed + 'static>(locks: T) -> Self {
        Self::of(Arc::new(locks), None)
    }

    /// Wraps a locker that grants shared locks, too.
    #[allow(dead_code, reason = "used or not, as the features say")]
    pub(crate) fn shared<T: Backed<Backend: SharedBackend> + 'static>(locks: T) -> Self {
        let locks = Arc::new(locks);
        Self::of(Arc::clone(&locks), Some(locks))
    }

    fn of<T: Backed + 'static>(locks: Arc<T>, readers: Option<Arc<dyn RwLocker>>) -> Self {
        let engine = locks.engine().clone();
        let closing = Box::pin(async move { engine.close().await });
        Self { locker: Arc::clone(&locks) as _, readers, admin: locks, closing }
    }

    /// The name of its backend.
    pub(crate) fn name(&self) -> &'static str {
        self.locker.capabilities().backend()
    }

    /// Waits until the operations under way have ended, for 2 s at most: a store that is silent must not keep the caller
    /// waiting.
    pub(crate) async fn close(self) {
        const BOUND: Duration = Duration::from_secs(2);
        let _ = tokio::time::timeout(BOUND, self.closing).await;
    }
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Store").field(&self.locker).finish()
    }
}
