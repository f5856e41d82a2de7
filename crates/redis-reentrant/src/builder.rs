use std::sync::Arc;

use leasehold_core::{Error, ErrorKind, Result};
use leasehold_redis::fred::clients::Client;
use leasehold_redis::{ConnectionSettings, Notify, StoreOptions};

use crate::backend::{FUNCTIONS, NAME};
use crate::session::random_id;
use crate::store::Store;
use crate::{RedisReentrant, SessionBackend};

/// Settings of a [`RedisReentrant`]. Nothing is checked or sent before [`connect`](Self::connect).
#[derive(Clone, Debug)]
#[must_use]
pub struct RedisReentrantBuilder {
    connection: ConnectionSettings,
    max_depth: u32,
}

impl RedisReentrantBuilder {
    const DEPTH: std::ops::RangeInclusive<u32> = 1..=100_000;

    leasehold_redis::connection_settings!();

    /// How often one session may hold a key at the same time, from 1 to 100,000; default 1,000. Beyond it acquiring is
    /// an error of kind [`Backend`](leasehold_core::ErrorKind::Backend), not a wait: it would be the session waiting for itself.
    pub fn max_depth(self, levels: u32) -> Self {
        Self { max_depth: levels, ..self }
    }

    /// Checks the settings, connects, and warns (through `tracing`) of a server that evicts locks, or whose
    /// fail-over could put two holders side by side.
    ///
    /// # Errors
    /// [`InvalidOptions`](leasehold_core::ErrorKind::InvalidOptions) before anything is sent;
    /// [`Unavailable`](leasehold_core::ErrorKind::Unavailable) when nobody answers, within a few seconds;
    /// [`Backend`](leasehold_core::ErrorKind::Backend) when the server does not let us in. None of them shows a password.
    ///
    /// # Cancel safety
    /// Dropping the future leaves nothing behind.
    pub async fn connect(self) -> Result<RedisReentrant> {
        Ok(RedisReentrant::new(self.open().await.map_err(|error| error.with_backend(NAME))?))
    }

    /// As [`connect`](Self::connect), but only the store-level backend of one new session, without an engine.
    ///
    /// # Errors
    /// As for [`connect`](Self::connect).
    pub async fn backend(self) -> Result<SessionBackend> {
        let store = self.open().await.map_err(|error| error.with_backend(NAME))?;
        Ok(SessionBackend::new(Arc::new(store), random_id()))
    }

    async fn open(self) -> Result<Store> {
        if !Self::DEPTH.contains(&self.max_depth) {
            let detail = format!("a max_depth of {} is outside 1 to 100,000", self.max_depth);
            return Err(Error::new(ErrorKind::InvalidOptions, "connect").detail(detail));
        }
        let redis = leasehold_redis::Store::open(self.connection.clone(), OPTIONS).await?;
        Ok(Store::new(redis, self.connection.fence_retention, self.max_depth))
    }

    /// The store with these settings, which are not checked, on a client of the caller's. Sends nothing.
    pub(crate) fn borrowing(self, client: Client) -> Store {
        let redis = leasehold_redis::Store::from_client(client, &self.connection, OPTIONS);
        Store::new(redis, self.connection.fence_retention, self.max_depth)
    }
}

const OPTIONS: StoreOptions = StoreOptions { functions: &FUNCTIONS, notifications: Notify::Releases };

impl Default for RedisReentrantBuilder {
    fn default() -> Self {
        Self { connection: ConnectionSettings::default(), max_depth: 1_000 }
    }
}
