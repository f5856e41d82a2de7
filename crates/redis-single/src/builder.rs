use std::fmt;
use std::time::Duration;

use leasehold_core::{Error, ErrorKind, Result};
use leasehold_redis::fred::clients::Client;
use leasehold_redis::{Confirmation, Connection, DEFAULT_COMMAND_TIMEOUT, Endpoint, Namespace, warn_of_eviction};

use crate::backend::NAME;
use crate::{RedisSingle, RedisSingleBackend};

/// Settings of a [`RedisSingle`]. Nothing is checked or sent before [`connect`](Self::connect).
#[derive(Clone)]
#[must_use]
pub struct RedisSingleBuilder {
    source: Option<Source>,
    namespace: Option<String>,
    command_timeout: Duration,
    fence_retention: Duration,
    confirmation: Option<Confirmation>,
    group_commit: bool,
}

#[derive(Clone)]
enum Source {
    Url(String),
    Client(Client),
}

impl RedisSingleBuilder {
    /// The shortest and the longest life of an unused counter.
    const RETENTION: [Duration; 2] = [Duration::from_secs(24 * 3600), Duration::from_secs(10 * 365 * 24 * 3600)];

    /// Where the server is: `redis://[[user]:password@]host[:port][/database][?namespace=…]`.
    ///
    /// Also `redis-sentinel://host[:port]?sentinelServiceName=…`, with `&node=host:port` for further Sentinels and
    /// `&sentinelUsername=…&sentinelPassword=…` where they want their own; and `redis-cluster://host[:port]`, with
    /// `?node=host:port` for further nodes to start from. With TLS `rediss…`; `valkey…` and `valkeys…` mean the same.
    pub fn url(self, url: impl Into<String>) -> Self {
        Self { source: Some(Source::Url(url.into())), ..self }
    }

    /// A client that the caller made, connected and will close, instead of a URL.
    pub fn client(self, client: Client) -> Self {
        Self { source: Some(Source::Client(client)), ..self }
    }

    /// Keeps the keys of programs that share a Redis apart: 1 to 64 bytes. Wins over the URL's; default `leasehold`.
    pub fn namespace(self, namespace: impl Into<String>) -> Self {
        Self { namespace: Some(namespace.into()), ..self }
    }

    /// How long a command may take, from 1 ms to a minute; default 1 s. Renewals take at most a quarter of the lease.
    pub fn command_timeout(self, limit: Duration) -> Self {
        Self { command_timeout: limit, ..self }
    }

    /// How long the counter of a key is kept after its last grant, from a day to ten years; default 7 days.
    ///
    /// A counter that is gone starts again at the server's clock, so tokens repeat only if that clock was set back.
    pub fn fence_retention(self, retention: Duration) -> Self {
        Self { fence_retention: retention, ..self }
    }

    /// Grants only what so many replicas have within that time, from 1 ms to 10 s; by default none is asked.
    ///
    /// Replication is asynchronous: without this, a fail-over can forget a grant that was just made, and with it the
    /// window is smaller, not gone, for a replica that has it need not be the one that is promoted. A grant that falls
    /// short is given back, and the attempt fails with [`Unavailable`](ErrorKind::Unavailable), which a waiting acquire
    /// rides out. Each attempt takes one more round trip (`WAIT`), during which the connection does nothing else.
    pub fn confirm_replicas(self, replicas: u32, within: Duration) -> Self {
        Self { confirmation: Confirmation::of(replicas, within), ..self }
    }

    /// Whether acquisitions and releases that come in while others are on their way leave together, as one script;
    /// default yes.
    ///
    /// It carries several times as many of them over the connection, and changes nothing for one that comes alone. In a
    /// Cluster each leaves alone.
    pub fn group_commit(self, group_commit: bool) -> Self {
        Self { group_commit, ..self }
    }

    /// Checks the settings, connects, and warns (through `tracing`) of a server that evicts locks.
    ///
    /// # Errors
    /// [`InvalidOptions`](ErrorKind::InvalidOptions) before anything is sent;
    /// [`Unavailable`](ErrorKind::Unavailable) when nobody answers, within a few seconds;
    /// [`Backend`](ErrorKind::Backend) when the server does not let us in. None of them shows a password.
    ///
    /// # Cancel safety
    /// Dropping the future leaves nothing behind.
    pub async fn connect(self) -> Result<RedisSingle> {
        Ok(self.backend().await?.into())
    }

    /// As [`connect`](Self::connect), but only the store-level backend, without an engine.
    ///
    /// # Errors
    /// As for [`connect`](Self::connect).
    pub async fn backend(self) -> Result<RedisSingleBackend> {
        self.open().await.map_err(|error| error.backend(NAME))
    }

    async fn open(self) -> Result<RedisSingleBackend> {
        let [shortest, longest] = Self::RETENTION;
        check("command_timeout", self.command_timeout, Duration::from_millis(1), Duration::from_secs(60))?;
        check("fence_retention", self.fence_retention, shortest, longest)?;
        self.confirmation.map_or(Ok(()), Confirmation::check)?;
        let mut namespace = self.namespace.map(Namespace::new).transpose()?;
        let connection = match self.source {
            Some(Source::Url(url)) => {
                let endpoint = Endpoint::parse(&url)?;
                namespace = namespace.or_else(|| endpoint.namespace().cloned());
                Connection::open(&endpoint, self.command_timeout).await?
            }
            Some(Source::Client(client)) => Connection::borrow(client, self.command_timeout),
            None => return Err(invalid("give it a url or a client")),
        };
        warn_of_eviction(&connection).await;
        let namespace = namespace.unwrap_or_default();
        Ok(RedisSingleBackend::new(connection, &namespace, self.fence_retention, self.confirmation, self.group_commit))
    }

    /// With default settings and without a word to the server.
    pub(crate) fn borrowing(self, client: Client) -> RedisSingleBackend {
        let connection = Connection::borrow(client, self.command_timeout);
        RedisSingleBackend::new(connection, &Namespace::default(), self.fence_retention, None, self.group_commit)
    }
}

fn check(what: &str, value: Duration, least: Duration, most: Duration) -> Result<()> {
    if (least..=most).contains(&value) {
        return Ok(());
    }
    Err(invalid(format!("a {what} of {value:?} is outside {least:?} to {most:?}")))
}

fn invalid(detail: impl Into<String>) -> Error {
    Error::new(ErrorKind::InvalidOptions, "connect").detail(detail)
}

impl Default for RedisSingleBuilder {
    fn default() -> Self {
        Self {
            source: None,
            namespace: None,
            command_timeout: DEFAULT_COMMAND_TIMEOUT,
            fence_retention: Duration::from_secs(7 * 24 * 3600),
            confirmation: None,
            group_commit: true,
        }
    }
}

impl fmt::Debug for RedisSingleBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisSingleBuilder")
            .field("source", &self.source)
            .field("namespace", &self.namespace)
            .field("command_timeout", &self.command_timeout)
            .field("fence_retention", &self.fence_retention)
            .field("confirmation", &self.confirmation)
            .field("group_commit", &self.group_commit)
            .finish()
    }
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            // A URL that cannot be read may hold a password anywhere.
            Self::Url(url) => match Endpoint::parse(url) {
                Ok(endpoint) => fmt::Debug::fmt(&endpoint, f),
                Err(_) => f.write_str("Endpoint(…)"),
            },
            Self::Client(client) => fmt::Debug::fmt(client, f),
        }
    }
}
