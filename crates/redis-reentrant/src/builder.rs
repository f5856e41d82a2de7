use std::sync::Arc;

use leasehold_core::{Error, ErrorKind, Result};
use leasehold_redis::fred::clients::Client;
use leasehold_redis::{ConnectionSettings, Notify, StoreOptions};

use crate::backend::{FUNCTIONS, NAME, SessionBackend};
use crate::locker::RedisReentrant;
use crate::session::random_id;
use crate::store::Store;

/// Settings for connecting a [`RedisReentrant`]. [`RedisReentrant::builder`] creates one. Nothing is checked or sent before
/// [`connect`](Self::connect).
#[derive(Clone, Debug)]
#[must_use]
pub struct RedisReentrantBuilder {
    connection: ConnectionSettings,
    max_depth: u32,
}

impl RedisReentrantBuilder {
    const DEPTH: std::ops::RangeInclusive<u32> = 1..=100_000;

    leasehold_redis::connection_settings!();

    /// Sets how often one session may hold a key at the same time, from 1 to 100,000; the default is 1,000. An acquisition
    /// beyond that is an error of kind [`Backend`](leasehold_core::ErrorKind::Backend), and does not wait: the session would
    /// wait for itself.
    pub fn max_depth(self, levels: u32) -> Self {
        Self { max_depth: levels, ..self }
    }

    /// Checks the settings and connects. Warns, through `tracing`, of a server that evicts locks, or whose fail-over could
    /// lead to two holders at the same time.
    ///
    /// # Errors
    /// - [`InvalidOptions`](leasehold_core::ErrorKind::InvalidOptions) before anything is sent, if a setting is invalid.
    /// - [`Unavailable`](leasehold_core::ErrorKind::Unavailable) within a few seconds, if no server answers.
    /// - [`Backend`](leasehold_core::ErrorKind::Backend) if the server refuses the user, the password or the certificate.
    ///
    /// No error shows a password.
    ///
    /// # Cancel safety
    /// Dropping the future leaves nothing behind.
    pub async fn connect(self) -> Result<RedisReentrant> {
        Ok(RedisReentrant::new(self.open().await.map_err(|error| error.with_backend(NAME))?))
    }

    /// Connects like [`connect`](Self::connect), and returns only the store-level backend of one new session, without an engine.
    ///
    /// # Errors
    /// The same as for [`connect`](Self::connect).
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
        Ok(Store::new(redis, self.max_depth))
    }
}

const OPTIONS: StoreOptions = StoreOptions { functions: &FUNCTIONS, notifications: Notify::Releases };

impl Default for RedisReentrantBuilder {
    fn default() -> Self {
        Self { connection: ConnectionSettings::default(), max_depth: 1_000 }
    }
}

impl RedisReentrant {
    /// Connects with default settings to `redis://[[user]:password@]host[:port][/database][?namespace=…]`,
    /// `redis-sentinel://…`, `redis-cluster://…`, or with TLS `rediss…`. See [`RedisReentrantBuilder::url`].
    ///
    /// # Errors
    /// The same as for [`RedisReentrantBuilder::connect`].
    ///
    /// # Cancel safety
    /// Dropping the future leaves nothing behind.
    pub async fn connect(url: &str) -> Result<Self> {
        Self::builder().url(url).connect().await
    }

    /// Creates a builder, for connecting with other settings.
    pub fn builder() -> RedisReentrantBuilder {
        RedisReentrantBuilder::default()
    }

    /// Uses a client that the caller made, connected and will close, in the namespace `leasehold`. Sends nothing.
    ///
    /// The client needs a reconnection policy: by default it never comes back after a lost connection.
    pub fn from_client(client: Client) -> Self {
        let RedisReentrantBuilder { connection, max_depth } = Self::builder();
        Self::new(Store::new(leasehold_redis::Store::from_client(client, &connection, OPTIONS), max_depth))
    }
}
