use std::sync::Arc;
use std::time::Duration;

use leasehold_core::Result;
use leasehold_redis::fred::clients::Client;
use leasehold_redis::{Confirmation, Connection, ConnectionSettings, GroupCommit, Namespace, Source, invalid};

use crate::backend::{NAME, STEPS};
use crate::session::random_id;
use crate::store::Store;
use crate::{RedisReentrant, SessionBackend};

/// Settings of a [`RedisReentrant`]. Nothing is checked or sent before [`connect`](Self::connect).
#[derive(Clone, Debug)]
#[must_use]
pub struct RedisReentrantBuilder {
    access: ConnectionSettings,
    max_depth: u32,
    group_commit: bool,
}

impl RedisReentrantBuilder {
    const DEPTH: std::ops::RangeInclusive<u32> = 1..=100_000;

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

    /// How often one session may hold a key at the same time, from 1 to 100,000; default 1,000. Beyond it acquiring is
    /// an error of kind [`Backend`](leasehold_core::ErrorKind::Backend), not a wait: it would be the session waiting for itself.
    pub fn max_depth(self, levels: u32) -> Self {
        Self { max_depth: levels, ..self }
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
    /// default yes. In a Cluster each leaves alone.
    pub fn group_commit(self, group_commit: bool) -> Self {
        Self { group_commit, ..self }
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
            return Err(invalid(format!("a max_depth of {} is outside 1 to 100,000", self.max_depth)));
        }
        let (retention, confirmation) = (self.access.fence_retention, self.access.confirmation);
        let (connection, namespace) = self.access.open().await?;
        let commits = GroupCommit::new(&connection, &STEPS, self.group_commit);
        Ok(Store::new(connection, &namespace, commits, retention, self.max_depth, confirmation))
    }

    /// With default settings and without a word to the server.
    pub(crate) fn borrowing(self, client: Client) -> Store {
        let connection = Connection::borrow(client, self.access.command_timeout);
        let commits = GroupCommit::new(&connection, &STEPS, self.group_commit);
        let retention = self.access.fence_retention;
        Store::new(connection, &Namespace::default(), commits, retention, self.max_depth, None)
    }
}

impl Default for RedisReentrantBuilder {
    fn default() -> Self {
        Self { access: ConnectionSettings::default(), max_depth: 1_000, group_commit: true }
    }
}
