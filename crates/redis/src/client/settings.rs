use std::fmt;
use std::time::Duration;

use fred::clients::Client;
use leasehold_core::{Error, ErrorKind, Result};

use crate::client::confirmation::Confirmation;
use crate::client::connection::Connection;
use crate::client::driver::DEFAULT_COMMAND_TIMEOUT;
use crate::client::endpoint::Endpoint;
use crate::client::eviction::warn_of_eviction;
use crate::client::replication::{refuse_a_replica, warn_of_fail_over};
use crate::keyspace::names::Namespace;

/// What the builders of backends on one Redis have in common. Nothing is checked or sent before [`open`](Self::open).
#[derive(Clone, Debug)]
pub struct ConnectionSettings {
    /// Where the server is.
    pub source: Option<Source>,
    /// Wins over the URL's.
    pub namespace: Option<String>,
    /// From 1 ms to a minute.
    pub command_timeout: Duration,
    /// From an hour to ten years.
    pub fence_retention: Duration,
    /// How many replicas a grant takes.
    pub confirmation: Option<Confirmation>,
}

/// A URL, or a client that somebody else made and will close.
#[derive(Clone)]
pub enum Source {
    /// A URL as [`Endpoint`] reads it.
    Url(String),
    /// A client.
    Client(Client),
}

/// How long the counter of a key is kept after its last grant unless the caller says otherwise.
pub const DEFAULT_FENCE_RETENTION: Duration = Duration::from_secs(7 * 24 * 3600);

impl ConnectionSettings {
    /// Checks everything, connects, and warns of a server that evicts locks or that a fail-over could double.
    ///
    /// # Errors
    /// [`InvalidOptions`](ErrorKind::InvalidOptions) before anything is sent; then as for [`Connection::open`], and
    /// [`Unavailable`](ErrorKind::Unavailable) where the server is a read-only replica.
    pub async fn open(self) -> Result<(Connection, Namespace)> {
        check("command_timeout", self.command_timeout, Duration::from_millis(1), Duration::from_secs(60))?;
        check_fence_retention(self.fence_retention, Duration::from_secs(3600))?;
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
        if let Some(warning) = refuse_a_replica(&connection).await? {
            tracing::warn!("{warning}");
        }
        warn_of_eviction(&connection).await;
        // What replicas confirm is on them.
        if self.confirmation.is_none() {
            warn_of_fail_over(&connection).await;
        }
        Ok((connection, namespace.unwrap_or_default()))
    }
}

impl Default for ConnectionSettings {
    fn default() -> Self {
        Self {
            source: None,
            namespace: None,
            command_timeout: DEFAULT_COMMAND_TIMEOUT,
            fence_retention: DEFAULT_FENCE_RETENTION,
            confirmation: None,
        }
    }
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Url(url) => f.debug_tuple("Endpoint").field(&Endpoint::shown(url)).finish(),
            Self::Client(client) => fmt::Debug::fmt(client, f),
        }
    }
}

/// Checks a setting.
///
/// # Errors
/// [`InvalidOptions`](ErrorKind::InvalidOptions) when it is outside its bounds.
pub fn check(what: &str, value: Duration, least: Duration, most: Duration) -> Result<()> {
    if (least..=most).contains(&value) {
        return Ok(());
    }
    Err(invalid(format!("a {what} of {value:?} is outside {least:?} to {most:?}")))
}

/// Checks how long counters are kept: so long, to ten years.
///
/// # Errors
/// [`InvalidOptions`](ErrorKind::InvalidOptions) when it is less or more.
pub fn check_fence_retention(retention: Duration, shortest: Duration) -> Result<()> {
    check("fence_retention", retention, shortest, Duration::from_secs(3650 * 24 * 3600))
}

/// A setting that makes no sense.
pub fn invalid(detail: impl Into<String>) -> Error {
    Error::new(ErrorKind::InvalidOptions, "connect").detail(detail)
}
