use leasehold_core::{EngineOptions, LocalHandoff, Result};
use leasehold_redis::fred::clients::Client;
use leasehold_redis::{ConnectionSettings, Notify, StoreOptions};

use crate::backend::{FUNCTIONS, NAME};
use crate::store::{LOCK, Store};
use crate::{RedisSingle, RedisSingleBackend};

/// Settings of a [`RedisSingle`]. Nothing is checked or sent before [`connect`](Self::connect).
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

    /// Whether the waiters of all processes queue in Redis, where a release grants the key to the first of them and tells
    /// that process alone; default yes. If not, a release signals all processes, and who asks first has it.
    ///
    /// A waiter that died keeps the others for at most 3 s, and not at all if Redis has noticed. Off whenever replicas
    /// [confirm](Self::confirm_replicas) grants; a program that has it off has no place in the queue of the others.
    pub fn queue(self, queue: bool) -> Self {
        Self { queue, ..self }
    }

    /// Whether a message that tells of a grant out of the line is only a reason to ask Redis; default no.
    ///
    /// Whoever may publish to the inboxes of a namespace and read its lines can forge such a message. It makes a guard
    /// that is lost with its first renewal, some 20 ms later. This way it makes none, for a third command an acquisition that
    /// waited in line: a key that goes round between processes is acquired about 40 % less often.
    pub fn verify_grants(self, verify_grants: bool) -> Self {
        Self { verify_grants, ..self }
    }

    /// How far grants pass from guard to guard inside this process; see [`LocalHandoff`].
    pub fn local_handoff(self, local_handoff: LocalHandoff) -> Self {
        Self { local_handoff, ..self }
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
    pub async fn connect(self) -> Result<RedisSingle> {
        let settings = EngineOptions::new().local_handoff(self.local_handoff);
        Ok(RedisSingle::with(self.backend().await?, settings))
    }

    /// As [`connect`](Self::connect), but only the store-level backend, without an engine.
    ///
    /// # Errors
    /// As for [`connect`](Self::connect).
    pub async fn backend(self) -> Result<RedisSingleBackend> {
        self.open().await.map_err(|error| error.with_backend(NAME))
    }

    async fn open(self) -> Result<RedisSingleBackend> {
        let redis = leasehold_redis::Store::open(self.connection.clone(), self.options()).await?;
        Ok(self.backend_on(redis))
    }

    /// The backend with these settings, which are not checked, on a client of the caller's. Sends nothing.
    pub(crate) fn borrowing(self, client: Client) -> RedisSingleBackend {
        let redis = leasehold_redis::Store::from_client(client, &self.connection, self.options());
        self.backend_on(redis)
    }

    fn backend_on(self, redis: leasehold_redis::Store) -> RedisSingleBackend {
        let (fence_retention, queues) = (self.connection.fence_retention, self.queues());
        RedisSingleBackend::new(Store { redis, fence_retention, queues })
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
