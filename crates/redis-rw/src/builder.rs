use leasehold_core::{EngineOptions, LocalHandoff, Result};
use leasehold_redis::fred::clients::Client;
use leasehold_redis::{ConnectionSettings, Notify, StoreOptions};

use crate::backend::{FUNCTIONS, NAME, RedisRwBackend};
use crate::locker::RedisRw;
use crate::store::{LOCK, Store};

/// Settings for connecting a [`RedisRw`]. [`RedisRw::builder`] creates one. Nothing is checked or sent before
/// [`connect`](Self::connect).
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct RedisRwBuilder {
    connection: ConnectionSettings,
    verify_grants: bool,
    local_handoff: LocalHandoff,
}

impl RedisRwBuilder {
    leasehold_redis::connection_settings!();

    /// Sets whether the notification of a grant from the queue is only a reason to ask Redis for the grant; the default is
    /// false.
    ///
    /// A user who may publish to the inboxes of a namespace and read its queues can forge such a notification. It makes a
    /// guard that is lost with its first renewal, some 20 ms later. With verification it makes none, at the cost of a third
    /// command for an acquisition that waited in the queue. It is on whenever replicas [confirm](Self::confirm_replicas) grants.
    pub fn verify_grants(self, verify_grants: bool) -> Self {
        Self { verify_grants, ..self }
    }

    /// Sets how far grants pass from guard to guard inside this process; see [`LocalHandoff`].
    pub fn local_handoff(self, local_handoff: LocalHandoff) -> Self {
        Self { local_handoff, ..self }
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
    pub async fn connect(self) -> Result<RedisRw> {
        let settings = EngineOptions::new().local_handoff(self.local_handoff);
        Ok(RedisRw::with(self.backend().await?, settings))
    }

    /// Connects like [`connect`](Self::connect), and returns only the store-level backend, without an engine.
    ///
    /// # Errors
    /// The same as for [`connect`](Self::connect).
    pub async fn backend(self) -> Result<RedisRwBackend> {
        let store = Store::open(self.connection.clone(), self.options()).await;
        store.map(|store| RedisRwBackend { store }).map_err(|error| error.with_backend(NAME))
    }

    fn options(&self) -> StoreOptions {
        // `WAIT` counts what this connection wrote, and a grant from the queue was written by another: it is asked for once more.
        let trusted = !self.verify_grants && self.connection.replicas.0 == 0;
        StoreOptions { functions: &FUNCTIONS, notifications: Notify::Grants { part: LOCK, trusted } }
    }
}

impl RedisRw {
    /// Connects with default settings to `redis://[[user]:password@]host[:port][/database][?namespace=…]`,
    /// `redis-sentinel://…`, `redis-cluster://…`, or with TLS `rediss…`. See [`RedisRwBuilder::url`].
    ///
    /// # Errors
    /// The same as for [`RedisRwBuilder::connect`].
    ///
    /// # Cancel safety
    /// Dropping the future leaves nothing behind.
    pub async fn connect(url: &str) -> Result<Self> {
        Self::builder().url(url).connect().await
    }

    /// Creates a builder, for connecting with other settings.
    pub fn builder() -> RedisRwBuilder {
        RedisRwBuilder::default()
    }

    /// Uses a client that the caller made, connected and will close, in the namespace `leasehold`. Sends nothing.
    ///
    /// The client needs a reconnection policy: by default it never comes back after a lost connection.
    pub fn from_client(client: Client) -> Self {
        let builder = Self::builder();
        RedisRwBackend { store: Store::from_client(client, &builder.connection, builder.options()) }.into()
    }
}
