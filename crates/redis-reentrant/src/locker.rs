use std::sync::{Arc, Mutex, PoisonError};

use futures::future::join_all;
use leasehold_core::{Backed, Capabilities, Engine, Result, WeakEngine};

use crate::backend::SessionBackend;
use crate::session::{Session, checked_id, random_id};
use crate::store::Store;

/// Locks on one Redis (a single server, the primary of a Sentinel set, or a Cluster) that their owner may take again.
///
/// A `RedisReentrant` locks nothing itself: each of its [`session`](Self::session)s is a locker. Clones share one
/// connection, which ends with [`close`](Self::close) or with the last clone, session and guard.
#[derive(Clone, Debug)]
pub struct RedisReentrant {
    store: Arc<Store>,
    sessions: Arc<Mutex<Vec<WeakEngine<SessionBackend>>>>,
}

impl RedisReentrant {
    pub(crate) fn new(store: Store) -> Self {
        Self { store: Arc::new(store), sessions: Arc::default() }
    }

    /// The capabilities of a session, without connecting.
    pub fn claims() -> Capabilities {
        SessionBackend::claims()
    }

    /// Opens a session with a random id: a new owner. No I/O.
    pub fn session(&self) -> Session {
        self.open(random_id())
    }

    /// Opens a session with this id, of 1 to 255 bytes: sessions with one id are one owner, also in several processes. No
    /// I/O.
    ///
    /// Everybody who knows the id can act as that owner. Each such session finds out by itself that the owner lost a key.
    ///
    /// # Errors
    /// [`InvalidOptions`](leasehold_core::ErrorKind::InvalidOptions) when the id is empty or too long.
    pub fn session_with_id(&self, id: impl Into<String>) -> Result<Session> {
        Ok(self.open(checked_id(id.into())?))
    }

    /// Closes all sessions: their guards are lost with the reason [`Shutdown`](leasehold_core::LossReason::Shutdown), and
    /// their leases are released. The connection is closed, unless it is a client of the caller. Ends within three times the
    /// [`command_timeout`](crate::RedisReentrantBuilder::command_timeout). Later acquisitions fail with
    /// [`Closed`](leasehold_core::ErrorKind::Closed). See [`Engine::close`].
    ///
    /// # Cancel safety
    /// Dropping the future leaves some keys to be freed by their lease.
    pub async fn close(&self) {
        let sessions = std::mem::take(&mut *self.sessions.lock().unwrap_or_else(PoisonError::into_inner));
        let engines: Vec<_> = sessions.iter().filter_map(WeakEngine::upgrade).collect();
        join_all(engines.iter().map(Engine::close)).await;
        self.store.redis.close().await;
    }

    fn open(&self, id: Arc<str>) -> Session {
        let session = Session::open(&self.store, id);
        let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        if sessions.len() == sessions.capacity() {
            sessions.retain(|session| session.upgrade().is_some());
            let left = sessions.len();
            sessions.reserve(left.max(8));
        }
        sessions.push(session.engine().downgrade());
        session
    }
}
