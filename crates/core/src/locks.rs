use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;

use crate::locker::through;
use crate::{
    Admin, Backed, Backend, BoxFuture, Capabilities, Capability, Cursor, DetachedLock, Error, ErrorKind, FencingToken,
    Holders, LockGuard, LockKey, LockOptions, Locker, OrBusy, Page, Result, RwLocker, SharedBackend,
};

/// A connected store, whatever its kind: a [`Locker`] and an [`Admin`] that can be cloned, closed, and asked for readers.
///
/// A clone is another handle on the same connection. `Debug` shows the name of the backend alone.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> leasehold_core::Result<()> {
/// use leasehold_core::{Locker, LockerExt, Locks, Memory, RwLockerExt};
///
/// let locks = Locks::shared(Memory::new());
/// locks.lock("invoice/42").await?.release().await?;
/// if let Some(rw) = locks.rw() {
///     rw.read("invoice/42").await?.release().await?;
/// }
/// println!("{} is used", locks.capabilities().backend());
/// locks.close().await;
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Locks {
    store: Arc<dyn Store>,
    readers: Option<Arc<dyn RwLocker>>,
}

/// What every connected store is.
trait Store: Locker + Admin {
    fn backend(&self) -> &dyn Backend;
    fn close(&self) -> BoxFuture<'_, ()>;
}

impl<T: Backed> Store for T {
    fn backend(&self) -> &dyn Backend {
        self.engine().backend()
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.engine().close())
    }
}

impl Locks {
    /// Wraps a locker that grants exclusive locks only.
    pub fn exclusive<T: Backed + 'static>(locks: T) -> Self {
        Self { store: Arc::new(locks), readers: None }
    }

    /// Wraps a locker that grants shared locks, too.
    pub fn shared<T: Backed<Backend: SharedBackend> + 'static>(locks: T) -> Self {
        let locks = Arc::new(locks);
        Self { store: Arc::clone(&locks) as _, readers: Some(locks) }
    }

    /// The locker by itself, for code that takes an `Arc<dyn Locker>`.
    pub fn locker(&self) -> Arc<dyn Locker> {
        Arc::clone(&self.store) as _
    }

    /// The locker with readers. `None` if the store grants exclusive locks only.
    pub fn rw(&self) -> Option<Arc<dyn RwLocker>> {
        self.readers.clone()
    }

    /// The reader/writer locks by themselves, as [`rw`](Self::rw) gives them.
    ///
    /// # Errors
    /// [`Unsupported`](ErrorKind::Unsupported), and why this store has none.
    pub fn readers(&self) -> Result<Arc<dyn RwLocker>> {
        let capabilities = self.capabilities();
        self.rw().ok_or_else(|| {
            let why = capabilities.why_not(Capability::Shared).unwrap_or("it has no readers");
            let error = Error::new(ErrorKind::Unsupported, "acquire").with_backend(capabilities.backend());
            error.detail(format!("no shared mode: {why}"))
        })
    }

    /// The operator's view by itself, for code that takes an `Arc<dyn Admin>`.
    pub fn admin(&self) -> Arc<dyn Admin> {
        Arc::clone(&self.store) as _
    }

    /// The steps of the store by themselves, for a program that passes them on to others, such as an agent. What is granted by a step
    /// has no guard, and nobody renews it.
    pub fn backend(&self) -> &dyn Backend {
        self.store.backend()
    }

    /// Closes the store for this handle and its clones, as [`Engine::close`](crate::Engine::close) does.
    ///
    /// # Panics
    /// When it is polled outside of a tokio runtime with timers.
    ///
    /// # Cancel safety
    /// Dropping the future leaves the store closed, and some keys to be freed by their lease.
    pub async fn close(&self) {
        self.store.close().await;
    }
}

impl fmt::Debug for Locks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Locks").field(&self.capabilities().backend()).finish()
    }
}

through!([] Locker for Locks, by store);
through!([] Admin for Locks, by store);
