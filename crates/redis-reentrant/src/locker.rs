use std::sync::{Arc, Mutex, PoisonError};

use futures::future::join_all;
use leasehold_core::{Capabilities, Engine, Result, WeakEngine};
use leasehold_redis::fred::clients::Client;

use crate::session::{checked_id, random_id};
use crate::store::Store;
use crate::{RedisReentrantBuilder, Session, SessionBackend};

/// Locks on one Redis (a single server, the primary of a Sentinel set, or a Cluster) that their owner may take again.
///
/// It locks nothing itself: its [`session`](Self::session)s do. Clones share one connection, which ends with
/// [`close`](Self::close) or with the last clone, session and guard.
#[derive(Clone, Debug)]
pub struct RedisReentrant {
    store: Arc<Store>,
    sessions: Arc<Mutex<Vec<WeakEngine<SessionBackend>>>>,
}

impl RedisReentrant {
    pub(crate) fn new(store: Store) -> Self {
        Self { store: Arc::new(store), sessions: Arc::default() }
    }

    /// Connects, with default settings: `redis://[[user]:password@]host[:port][/database][?namespace=…]`,
    /// `redis-sentinel://…`, `redis-cluster://…`, and with TLS `rediss…`. See [`RedisReentrantBuilder::url`].
    ///
    /// # Errors
    /// As for [`RedisReentrantBuilder::connect`].
    ///
    /// # Cancel safety
    /// Dropping the future leaves nothing behind.
    pub async fn connect(url: &str) -> Result<Self> {
        Self::builder().url(url).connect().await
    }

    /// To connect with other settings.
    pub fn builder() -> RedisReentrantBuilder {
        RedisReentrantBuilder::default()
    }

    /// Uses a client that the caller made, connected and will close, in the namespace `leasehold`.
    ///
    /// Give it a reconnection policy: by default it never comes back after a lost connection.
    pub fn from_client(client: Client) -> Self {
        Self::new(Self::builder().borrowing(client))
    }

    /// What a session promises beyond mutual exclusion, before anything is connected.
    pub fn claims() -> Capabilities {
        SessionBackend::claims()
    }

    /// A new owner, with a random id. No I/O.
    pub fn session(&self) -> Session {
        self.open(random_id())
    }

    /// An owner with this id, of 1 to 255 bytes: sessions with one id are one owner, also in several processes. No I/O.
    ///
    /// Whoever knows the id can act as that owner. Each such session finds out by itself that the owner lost a key.
    ///
    /// # Errors
    /// [`InvalidOptions`](leasehold_core::ErrorKind::InvalidOptions) when the id is empty or too long.
    pub fn session_with_id(&self, id: impl Into<String>) -> Result<Session> {
        Ok(self.open(checked_id(id.into())?))
    }

    /// Ends it: guards of all sessions are told [`Shutdown`](leasehold_core::LossReason::Shutdown), what they held is
    /// released, and the connection is closed if it is our own: within three times the
    /// [`command_timeout`](RedisReentrantBuilder::command_timeout). Later acquisitions fail with
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
        sessions.push(session.downgrade());
        session
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn sessions_that_are_gone_are_forgotten_and_the_others_are_not() {
        let locks = RedisReentrant::from_client(Client::default());
        let kept: Vec<_> = (0..100).map(|_| locks.session()).collect();
        for _ in 0..10_000 {
            locks.session();
        }
        let sessions = locks.sessions.lock().unwrap();
        assert!(sessions.len() < 400, "{} are remembered", sessions.len());
        assert_eq!(sessions.iter().filter_map(WeakEngine::upgrade).count(), kept.len());
    }
}
