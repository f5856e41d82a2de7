use std::time::Duration;

use leasehold_core::{EngineOptions, LocalHandoff, Result};
use leasehold_redis::fred::clients::Client;
use leasehold_redis::{Confirmation, Connection, ConnectionSettings, Namespace, Source};

use crate::backend::{NAME, QueueMode};
use crate::{RedisSingle, RedisSingleBackend};

/// Settings of a [`RedisSingle`]. Nothing is checked or sent before [`connect`](Self::connect).
#[derive(Clone, Debug)]
#[must_use]
pub struct RedisSingleBuilder {
    access: ConnectionSettings,
    group_commit: bool,
    queue: bool,
    verify_grants: bool,
    local_handoff: LocalHandoff,
}

impl RedisSingleBuilder {
    /// Where the server is: `redis://[[user]:password@]host[:port][/database][?namespace=…]`.
    ///
    /// Also `redis-sentinel://host[:port]?sentinelServiceName=…`, with `&node=host:port` for further Sentinels and
    /// `&sentinelUsername=…&sentinelPassword=…` where they want their own; and `redis-cluster://host[:port]`, with
    /// `?node=host:port` for further nodes to start from. With TLS `rediss…`, and with
    /// `?cacert=FILE` and `?cert=FILE&key=FILE` roots and a certificate of one's own; `valkey…` and `valkeys…` mean the same.
    pub fn url(mut self, url: impl Into<String>) -> Self {
        self.access.source = Some(Source::Url(url.into()));
        self
    }

    /// A client that the caller made, connected and will close, instead of a URL.
    pub fn client(mut self, client: Client) -> Self {
        self.access.source = Some(Source::Client(client));
        self
    }

    /// Keeps the keys of programs that share a Redis apart: 1 to 64 bytes. Wins over the URL's; default `leasehold`.
    pub fn namespace(mut self, namespace: impl Into<String>) -> Self {
        self.access.namespace = Some(namespace.into());
        self
    }

    /// How long a command may take, from 1 ms to a minute; default 1 s. Renewals take at most a quarter of the lease.
    pub fn command_timeout(mut self, limit: Duration) -> Self {
        self.access.command_timeout = limit;
        self
    }

    /// How long the counter of a key is kept after its last grant, from an hour to ten years; default 7 days.
    ///
    /// A counter takes about 130 bytes. One that is gone starts again at the server's clock, so tokens repeat only if that
    /// was set back by more than this, or if the numbers had run ahead of it by more: with 5,000 grants of one key a second
    /// they gain four seconds each second, with a thousand and less none.
    pub fn fence_retention(mut self, retention: Duration) -> Self {
        self.access.fence_retention = retention;
        self
    }

    /// Grants and renews only what so many replicas have within that time, from 1 ms to 10 s; by default none is asked.
    ///
    /// Replication is asynchronous: without this, a fail-over can forget a grant that was just made, and a primary that is
    /// cut off goes on renewing what its successor grants to others. With it neither happens, as long as the replica that is
    /// promoted is one that confirmed: for certain if all do. A grant that falls short is given back, and the attempt fails with
    /// [`Unavailable`](leasehold_core::ErrorKind::Unavailable), which a waiting acquire rides out; a renewal that falls short
    /// is tried again until the guard's deadline. Each attempt takes one more round trip (`WAIT`), and each batch of
    /// renewals one to each primary; meanwhile the connection does nothing else.
    pub fn confirm_replicas(mut self, replicas: u32, within: Duration) -> Self {
        self.access.confirmation = Confirmation::of(replicas, within);
        self
    }

    /// Whether acquisitions and releases that come in while others are on their way leave together, as one script;
    /// default yes.
    ///
    /// It carries several times as many of them over the connection, and changes nothing for one that comes alone. In a
    /// Cluster each leaves alone.
    pub fn group_commit(self, group_commit: bool) -> Self {
        Self { group_commit, ..self }
    }

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
        let (retention, confirmation) = (self.access.fence_retention, self.access.confirmation);
        let (connection, namespace) = self.access.open().await?;
        let queue = QueueMode::of(self.queue, self.verify_grants);
        Ok(RedisSingleBackend::new(connection, &namespace, retention, confirmation, self.group_commit, queue))
    }

    /// With default settings and without a word to the server.
    pub(crate) fn borrowing(self, client: Client) -> RedisSingleBackend {
        let connection = Connection::borrow(client, self.access.command_timeout);
        let retention = self.access.fence_retention;
        let queue = QueueMode::of(self.queue, self.verify_grants);
        RedisSingleBackend::new(connection, &Namespace::default(), retention, None, self.group_commit, queue)
    }
}

impl Default for RedisSingleBuilder {
    fn default() -> Self {
        Self {
            access: ConnectionSettings::default(),
            group_commit: true,
            queue: true,
            verify_grants: false,
            local_handoff: LocalHandoff::new(),
        }
    }
}
