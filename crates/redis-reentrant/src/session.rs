use std::sync::Arc;

use leasehold_core::{Backed, Engine, EngineOptions, Error, ErrorKind, OwnerId, Result};

use crate::backend::{NAME, SessionBackend};
use crate::store::Store;

/// An owner that may take a key again while it holds it: a [`Locker`](leasehold_core::Locker) and
/// [`Admin`](leasehold_core::Admin) from [`RedisReentrant::session`](crate::RedisReentrant::session).
///
/// Every task that has the session, or a clone of it, acts as this owner: tasks that exclude each other need a session each.
/// A guard gives back one level; the last one frees the key. A session is cheap to make; it shares the connection. `Debug`
/// shows a part of the id.
#[derive(Clone, Debug)]
pub struct Session {
    engine: Engine<SessionBackend>,
}

impl Session {
    /// The length of the longest id, in bytes.
    pub const MAX_ID_BYTES: usize = 255;

    pub(crate) fn open(store: &Arc<Store>, id: Arc<str>) -> Self {
        let settings = EngineOptions::new().waiters(&store.waiters);
        Self { engine: Engine::with(SessionBackend::new(Arc::clone(store), id), settings) }
    }

    /// The id of the session. Everybody who knows it can act as this owner.
    pub fn id(&self) -> &str {
        &self.engine.backend().id
    }

    /// Closes the session: its guards are lost with the reason [`Shutdown`](leasehold_core::LossReason::Shutdown), and their
    /// leases are released. Later acquisitions fail with [`Closed`](ErrorKind::Closed). The connection and other sessions stay.
    ///
    /// # Cancel safety
    /// Dropping the future leaves the session closed, and some keys to be freed by their lease.
    pub async fn close(&self) {
        self.engine.close().await;
    }
}

impl Backed for Session {
    type Backend = SessionBackend;
    fn engine(&self) -> &Engine<SessionBackend> {
        &self.engine
    }
}

/// A random id, which nobody can guess.
pub(crate) fn random_id() -> Arc<str> {
    OwnerId::random().to_hex().into()
}

/// Checks the length of an id.
pub(crate) fn checked_id(id: String) -> Result<Arc<str>> {
    match id.len() {
        1..=Session::MAX_ID_BYTES => Ok(id.into()),
        bytes => {
            let detail = format!("the id has {bytes} bytes; it takes 1 to {}", Session::MAX_ID_BYTES);
            Err(Error::new(ErrorKind::InvalidOptions, "open a session").with_backend(NAME).detail(detail))
        }
    }
}
