use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::time::Duration;

use leasehold_core::{Backend, Clock, Error, ErrorKind, LeaseStatus, MemoryBackend, Namespace, Renewal, Result};

/// The stores of this process, by address.
static STORES: LazyLock<Mutex<HashMap<String, MemoryBackend>>> = LazyLock::new(Mutex::default);

#[derive(Clone, Debug)]
pub(crate) struct Store {
    memory: MemoryBackend,
    closed: Arc<AtomicBool>,
}

impl Store {
    pub(crate) const ANSWERS_WITHIN: Duration = Duration::from_secs(1);

    pub(crate) async fn open(address: &str, namespace: Namespace) -> Result<Self> {
        let mut stores = STORES.lock().unwrap_or_else(PoisonError::into_inner);
        let store = stores.entry(address.to_owned()).or_insert_with(|| MemoryBackend::new(Clock::system()));
        Ok(Self { memory: store.namespace(namespace.as_str()), closed: Arc::default() })
    }

    pub(crate) async fn close(&self) {
        self.closed.store(true, Ordering::SeqCst);
    }

    pub(crate) fn memory(&self) -> Result<&MemoryBackend> {
        let closed = self.closed.load(Ordering::SeqCst);
        if closed { Err(Error::new(ErrorKind::Closed, "ask the store")) } else { Ok(&self.memory) }
    }

    pub(crate) async fn renew_one(&self, renewal: Renewal) -> Result<LeaseStatus> {
        self.memory()?.renew(&[renewal], Self::ANSWERS_WITHIN).await.remove(0)
    }
}
