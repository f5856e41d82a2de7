use leasehold_core::{EngineOptions, LocalHandoff, Result};
use leasehold_redis::fred::clients::Client;
use leasehold_redis::{ConnectionSettings, Notify, StoreOptions};

use crate::backend::{FUNCTIONS, NAME, RedisSingleBackend};
use crate::locker::RedisSingle;
use crate::store::{LOCK, Store};

/// Settings for connecting a [`RedisSingle`]. [`RedisSingle::builder`] creates one. Nothing is checked or sent before
/// [`connect`](Self::connect).
#[derive(Clone, Debug)]
#[must_use]
pub struct RedisSingleBuilder {
    connection: ConnectionSettings,
    queue: bool,
    verify_grants: bool,
    local_handoff: LocalHandoff,
}

impl RedisSingleBuilder {
    leasehold_redis::connection_settings!();

    /// Sets whether the waiters of all processes queue in Redis; the default is true. A release then grants the key to the
    /// first waiter of the queue and notifies that process alone. Without the queue a release notifies all processes, and
    /// the first one that asks has the key.
    ///
    /// A waiter that died delays the others by at most 3 s, and not at all if Redis has noticed that its connection is closed.
    /// The queue is off whenever replicas [confirm](Self::confirm_replicas) grants. A program that has it off has no place in
    /// the queue of the others.
    pub fn queue(self, queue: bool) -> Self {
        Self { queue, ..self }
    }

    /// Sets whether the notification of a grant from the queue is only a reason to ask Redis for the grant; the default is
    /// false.
    ///
    /// A user who may publish to the inboxes of a namespace and read its queues can forge such a notification. It makes a
    /// guard that is lost with its first renewal, some 20 ms later. With verification it makes none, at the cost of a third
    /// command for an acquisition that waited in the queue: a key that goes round between processes is acquired about 40 %
    /// less often.
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
    pub async fn connect(self) -> Result<RedisSingle> {
        let settings = EngineOptions::new().local_handoff(self.local_handoff);
        Ok(RedisSingle::with(self.backend().await?, settings))
    }

    /// Connects like [`connect`](Self::connect), and returns only the store-level backend, without an engine.
    ///
    /// # Errors
    /// The same as for [`connect`](Self::connect).
    pub async fn backend(self) -> Result<RedisSingleBackend> {
        let redis = leasehold_redis::Store::open(self.connection.clone(), self.options()).await;
        let redis = redis.map_err(|error| error.with_backend(NAME))?;
        Ok(RedisSingleBackend { store: Store { redis, queues: self.queues() } })
    }

    fn options(&self) -> StoreOptions {
        let grants = Notify::Grants { part: LOCK, trusted: !self.verify_grants };
        StoreOptions { functions: &FUNCTIONS, notifications: if self.queues() { grants } else { Notify::Releases } }
    }

    /// Whether waiters queue in Redis. `WAIT` confirms what this connection wrote, and a grant from the queue is written by
    /// another process.
    fn queues(&self) -> bool {
        self.queue && self.connection.replicas.0 == 0
    }
}

impl Default for RedisSingleBuilder {
    fn default() -> Self {
        Self {
            connection: ConnectionSettings::default(),
            queue: true,
            verify_grants: false,
            local_handoff: LocalHandoff::new(),
        }
    }
}

impl RedisSingle {
    /// Connects with default settings to `redis://[[user]:password@]host[:port][/database][?namespace=…]`,
    /// `redis-sentinel://…`, `redis-cluster://…`, or with TLS `rediss…`. See [`RedisSingleBuilder::url`].
    ///
    /// # Errors
    /// The same as for [`RedisSingleBuilder::connect`].
    ///
    /// # Cancel safety
    /// Dropping the future leaves nothing behind.
    pub async fn connect(url: &str) -> Result<Self> {
        Self::builder().url(url).connect().await
    }

    /// Creates a builder, for connecting with other settings.
    pub fn builder() -> RedisSingleBuilder {
        RedisSingleBuilder::default()
    }

    /// Uses a client that the caller made, connected and will close, in the namespace `leasehold`. Sends nothing.
    ///
    /// The client needs a reconnection policy: by default it never comes back after a lost connection.
    pub fn from_client(client: Client) -> Self {
        let builder = Self::builder();
        let redis = leasehold_redis::Store::from_client(client, &builder.connection, builder.options());
        RedisSingleBackend { store: Store { redis, queues: builder.queues() } }.into()
    }
}
