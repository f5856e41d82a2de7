use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use fred::clients::Client;
use fred::error::{Error as DriverError, ErrorKind as DriverKind};
use fred::interfaces::{ClientLike, ClusterInterface};
use fred::types::Value;
use fred::types::config::{Config, Server, ServerConfig};
use fred::util::redis_keyslot;
use leasehold_core::{Error, ErrorKind, Home, Result, Secrets};
use tokio::sync::watch;
use tokio::time::timeout;

use crate::client::cluster::Cluster;
use crate::client::command::{Command, SendError, Target};
use crate::client::endpoint::Endpoint;
use crate::client::link::Link;
use crate::client::sentinels::Sentinels;
use crate::client::value::text;
use crate::client::{clear_text, error, secrets};

/// One server, Sentinel set or Cluster, over one connection to each primary. All commands and all clones share it.
///
/// An own connection ([`open`](Self::open)) ends with its last clone, or with [`close`](Self::close); a borrowed one
/// ([`borrow`](Self::borrow)) is left alone.
#[derive(Clone)]
pub(crate) struct Connection(Arc<Inner>);

struct Inner {
    route: Route,
    shown: String,
    secrets: Secrets,
    command_timeout: Duration,
    closed: AtomicBool,
    /// Where it was opened, unless that was somebody else.
    home: Option<Home>,
}

/// How commands find their server.
enum Route {
    One(Link),
    Sentinels(Sentinels),
    Cluster(Cluster),
}

impl Connection {
    /// Connects with the settings that locks need; see [`Store::connect`](crate::Store::connect).
    pub(crate) async fn open(endpoint: &Endpoint, command_timeout: Duration) -> Result<Self> {
        if let Some(client) = &endpoint.client {
            return Ok(Self::borrow(client.clone(), command_timeout));
        }
        let (config, shown) = (&endpoint.config, endpoint.to_string());
        clear_text::warn_of(endpoint);
        let route = match &config.server {
            ServerConfig::Sentinel { .. } => {
                Sentinels::open(config, shown.clone(), command_timeout).await.map(Route::Sentinels)
            }
            ServerConfig::Clustered { .. } => {
                Cluster::open(config, shown.clone(), command_timeout).await.map(Route::Cluster)
            }
            ServerConfig::Centralized { .. } => {
                Link::open(config.clone(), shown.clone(), command_timeout).await.map(Route::One)
            }
        };
        let secrets = secrets::of(config);
        let route = route.map_err(|error| error::unreachable(&shown, &error, &secrets))?;
        Ok(Self::new(route, shown, secrets, command_timeout, Home::here()))
    }

    /// Uses a client that somebody else made and will close; see [`Store::from_client`](crate::Store::from_client).
    pub(crate) fn borrow(client: Client, command_timeout: Duration) -> Self {
        let secrets = secrets::of(&client.client_config());
        let link = Link::borrow(client);
        let shown = link.shown.clone();
        Self::new(Route::One(link), shown, secrets, command_timeout, None)
    }

    fn new(route: Route, shown: String, secrets: Secrets, command_timeout: Duration, home: Option<Home>) -> Self {
        Self(Arc::new(Inner { route, shown, secrets, command_timeout, closed: AtomicBool::new(false), home }))
    }

    /// Says goodbye to the server and ends the connection, if it is our own, within the
    /// [`command_timeout`](Self::command_timeout). Later commands fail with [`Closed`](ErrorKind::Closed).
    pub(crate) async fn close(&self) {
        if self.0.closed.swap(true, Ordering::AcqRel) {
            return;
        }
        let closing = async {
            match &self.0.route {
                Route::One(link) => link.close().await,
                Route::Sentinels(sentinels) => sentinels.close().await,
                Route::Cluster(cluster) => cluster.close().await,
            }
        };
        drop(timeout(self.command_timeout(), closing).await);
    }

    /// Where it is, without credentials.
    pub(crate) fn shown(&self) -> &str {
        &self.0.shown
    }

    /// How long a command may take unless the caller says otherwise.
    pub(crate) fn command_timeout(&self) -> Duration {
        self.0.command_timeout
    }

    /// Whether keys are spread over nodes by hash slot, so that a script may touch those of one slot only.
    pub(crate) fn is_clustered(&self) -> bool {
        match &self.0.route {
            Route::One(link) => link.client.is_clustered(),
            Route::Sentinels(_) => false,
            Route::Cluster(_) => true,
        }
    }

    /// Whether Sentinels may give the place of the server that is asked now to another.
    pub(crate) fn has_sentinels(&self) -> bool {
        match &self.0.route {
            Route::One(link) => matches!(link.client.client_config().server, ServerConfig::Sentinel { .. }),
            Route::Sentinels(_) => true,
            Route::Cluster(_) => false,
        }
    }

    /// The nodes that hold data: one, or every primary of a Cluster. `None` goes with any command to the only one.
    pub(crate) fn primaries(&self) -> Vec<Option<Server>> {
        match &self.0.route {
            Route::Cluster(cluster) => cluster.primaries().into_iter().map(Some).collect(),
            Route::One(link) if link.client.is_clustered() => match link.client.cached_cluster_state() {
                Some(state) => state.unique_primary_nodes().into_iter().map(Some).collect(),
                None => vec![None],
            },
            _ => vec![None],
        }
    }

    /// Who may have what was written for this slot; as for [`primaries`](Self::primaries).
    pub(crate) fn writers(&self, slot: u16) -> Vec<Option<Server>> {
        match &self.0.route {
            Route::Cluster(cluster) => cluster.with(slot).into_iter().map(Some).collect(),
            Route::One(link) if link.client.is_clustered() => {
                let state = link.client.cached_cluster_state();
                vec![state.and_then(|state| state.get_server(slot).cloned())]
            }
            _ => vec![None],
        }
    }

    /// How to open a connection that receives what is published, at this moment.
    pub(crate) fn pubsub_route(&self) -> Result<PubSubRoute, DriverError> {
        let route = match &self.0.route {
            Route::One(link) => {
                Some(PubSubRoute { config: link.client.client_config(), stays: true, replaced_by: None })
            }
            Route::Sentinels(sentinels) => sentinels.primary().map(|(config, replaced_by)| PubSubRoute {
                config,
                stays: true,
                replaced_by: Some(replaced_by),
            }),
            Route::Cluster(cluster) => {
                cluster.any().map(|config| PubSubRoute { config, stays: false, replaced_by: None })
            }
        };
        route.ok_or_else(|| DriverError::new(DriverKind::Routing, "There is no connection at this moment."))
    }

    /// Sends one command and waits for its answer for at most `within`; before, as long again for a lost connection
    /// to come back.
    pub(crate) async fn send(
        &self,
        name: &'static str,
        arguments: Vec<Value>,
        target: Target,
        within: Duration,
    ) -> Result<Value, SendError> {
        self.send_command(Command { name, arguments, target, wait: None }, within).await
    }

    /// See [`send`](Self::send).
    pub(crate) async fn send_command(&self, command: Command, within: Duration) -> Result<Value, SendError> {
        if self.0.closed.load(Ordering::Acquire) {
            return Err(SendError::NotSent(Error::new(ErrorKind::Closed, "ask Redis")));
        }
        self.0.home.as_ref().map_or(Ok(()), |home| home.check("ask Redis")).map_err(SendError::NotSent)?;
        match &self.0.route {
            Route::One(link) => link.send(command, within).await,
            Route::Sentinels(sentinels) => sentinels.send(command, within).await,
            Route::Cluster(cluster) => cluster.send(command, within).await,
        }
    }

    /// Sends one command of words, and waits for its answer for at most the [`command_timeout`](Self::command_timeout).
    pub(crate) async fn ask(&self, name: &'static str, words: &[&str], target: Target) -> Result<Value> {
        let words = words.iter().map(|word| Value::from(*word)).collect();
        self.send(name, words, target, self.command_timeout()).await.map_err(|failed| self.unanswered(failed))
    }

    /// The text under a name, if there is one.
    pub(crate) async fn get(&self, name: &str) -> Result<Option<String>> {
        let value = self.ask("GET", &[name], Target::Slot(redis_keyslot(name.as_bytes()))).await?;
        Ok(Some(value).filter(|value| !value.is_null()).map(|value| text(&value).to_owned()))
    }

    /// The error of a command without an answer.
    pub(crate) fn unanswered(&self, failed: SendError) -> Error {
        match failed {
            SendError::NotSent(error) => error,
            SendError::Sent(error) => self.failed(&error),
        }
    }

    /// The error of a command, for the engine, which adds operation, backend and key.
    pub(crate) fn failed(&self, error: &DriverError) -> Error {
        error::failed(error, &self.0.secrets)
    }

    /// A text of the server without the passwords that it was given.
    pub(crate) fn quote(&self, said: &str) -> String {
        self.0.secrets.hide(said)
    }

    /// The error for a command that the server refused inside a script, with this reply.
    pub(crate) fn refused(&self, reply: &str) -> Error {
        // Redis before 7 puts a `-` in front.
        let error = DriverError::new(DriverKind::Unknown, reply.trim_start_matches('-').to_owned());
        match &self.0.route {
            Route::One(link) => link.look_into(&error),
            Route::Sentinels(sentinels) => sentinels.look_into(&error),
            Route::Cluster(cluster) => cluster.look_into(&error),
        }
        self.failed(&error)
    }

    fn is_connected(&self) -> bool {
        match &self.0.route {
            Route::One(link) => link.is_connected(),
            Route::Sentinels(sentinels) => sentinels.is_connected(),
            Route::Cluster(cluster) => cluster.is_connected(),
        }
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection")
            .field("server", &self.0.shown)
            .field("connected", &self.is_connected())
            .finish_non_exhaustive()
    }
}

/// Where a connection for pub/sub leads.
pub(crate) struct PubSubRoute {
    pub(crate) config: Config,
    /// When the connection breaks, the same server is the one to listen to. Otherwise another may be.
    pub(crate) stays: bool,
    /// Changes when another server is the one to listen to.
    replaced_by: Option<watch::Receiver<Option<Arc<Link>>>>,
}

impl PubSubRoute {
    /// Waits until another server is the one to listen to.
    pub(crate) async fn replaced(self) {
        match self.replaced_by {
            Some(mut replaced_by) => drop(replaced_by.changed().await),
            None => std::future::pending().await,
        }
    }
}

#[cfg(test)]
mod tests {
    use leasehold_testkit::eventually;
    use leasehold_testkit::redis::FakeRedis;

    use super::*;
    use crate::client::driver::DEFAULT_COMMAND_TIMEOUT;

    #[tokio::test]
    async fn a_driver_that_gave_up_is_started_again() {
        let fake = FakeRedis::start(|words| matches!(words[0], "GET" | "QUIT").then_some("$5\r\nthere\r\n")).await;
        let endpoint = Endpoint::parse(&fake.url()).expect("a good URL");
        let connection = Connection::open(&endpoint, DEFAULT_COMMAND_TIMEOUT).await.expect("a connection");
        let Route::One(link) = &connection.0.route else { panic!("one server") };
        link.client.quit().await.expect("it ends");
        eventually("it works again", async || connection.get("k").await.is_ok()).await;
    }
}
