use std::sync::Arc;
use std::time::Duration;

use leasehold_core::{Clock, EngineOptions, Error, ErrorKind, LocalHandoff, Result};
use leasehold_redis::fred::clients::Client;
use leasehold_redis::{ConnectionSettings, Endpoint, Namespace, Source, check_setting};

use crate::attempt::AttemptsInFlight;
use crate::backend::RedlockBackend;
use crate::background_tasks::BackgroundTasks;
use crate::batch::Context;
use crate::fleet::Fleet;
use crate::locker::Redlock;
use crate::membership;
use crate::node::{MARKER, NAME, Node};
use crate::nodes::Nodes;
use crate::pending_releases::PendingReleases;
use crate::store::Store;

/// Settings for connecting a [`Redlock`]. [`Redlock::builder`] creates one. Nothing is checked or sent before
/// [`connect`](Self::connect).
#[derive(Clone, Debug)]
#[must_use]
pub struct RedlockBuilder {
    nodes: Vec<Source>,
    connection: ConnectionSettings,
    fencing: bool,
    node_limit: Duration,
    drift: Duration,
    fence_retention: Duration,
    local_handoff: LocalHandoff,
    auto_repair: bool,
}

impl RedlockBuilder {
    /// Adds nodes from one text, in which commas separate their URLs: `redlock:redis://a,redis://b,redis://c`.
    ///
    /// A comma in a password is written `%2C`.
    pub fn url(mut self, url: &str) -> Self {
        let nodes = url.strip_prefix("redlock:").unwrap_or(url);
        self.nodes.extend(nodes.split(',').map(|url| Source::Url(url.trim().to_owned())));
        self
    }

    /// Adds nodes by their URLs: `redis://[[user]:password@]host[:port][/database][?namespace=…]`, or with TLS `rediss://…`
    /// with `?cacert=FILE` and `?cert=FILE&key=FILE` for roots and a certificate.
    ///
    /// The nodes must be an odd number from 3 on, each a server of its own.
    pub fn nodes<U: Into<String>>(mut self, urls: impl IntoIterator<Item = U>) -> Self {
        self.nodes.extend(urls.into_iter().map(|url| Source::Url(url.into())));
        self
    }

    /// Adds nodes by clients that the caller made, connected and will close.
    pub fn clients(mut self, clients: impl IntoIterator<Item = Client>) -> Self {
        self.nodes.extend(clients.into_iter().map(Source::Client));
        self
    }

    leasehold_redis::connection_settings!(namespace, group_commit);

    /// Sets whether grants carry tokens, for which some attempts need a second round; the default is true.
    ///
    /// All programs that share keys must agree: the token of one program does not protect against another program that has
    /// none.
    pub fn fencing(self, fencing: bool) -> Self {
        Self { fencing, ..self }
    }

    /// Sets how long one node may take for an answer, from 10 ms to 10 s; the default is 200 ms. The limit is never more than
    /// a tenth of the lease, or, for a lease below a second, a third of it up to 100 ms.
    pub fn node_limit(self, limit: Duration) -> Self {
        Self { node_limit: limit, ..self }
    }

    /// Sets how much longer than the ttl the nodes keep a lease, from 0 to 10 s; the default is 0.
    ///
    /// This comes in addition to the margin of 1 % of the lease and 2 ms that every guard keeps. It is for nodes whose clocks
    /// are set in steps: a step of one node's clock up to this length breaks no lease.
    pub fn drift(self, drift: Duration) -> Self {
        Self { drift, ..self }
    }

    /// Sets how long the counter of a key is kept after its last grant, from a day to ten years; the default is 7 days.
    ///
    /// A counter that is gone starts again at the nodes' clocks, so tokens repeat only if the clocks were set back.
    pub fn fence_retention(self, fence_retention: Duration) -> Self {
        Self { fence_retention, ..self }
    }

    /// Sets how far grants pass from guard to guard inside this process; see [`LocalHandoff`].
    pub fn local_handoff(self, local_handoff: LocalHandoff) -> Self {
        Self { local_handoff, ..self }
    }

    /// Sets whether the nodes are looked at every 5 s, and those that lost their data are repaired, as
    /// [`repair`](Redlock::repair) does; the default is false.
    ///
    /// Several programs may do so: one of them repairs, and the others wait for it. A repair that fails is an event of the level
    /// warn, and is tried again up to a minute later.
    pub fn auto_repair(self, auto_repair: bool) -> Self {
        Self { auto_repair, ..self }
    }

    /// Checks the settings, connects to all nodes, and checks that each is a server of its own. Sets up a new deployment, if
    /// all nodes answer and none was ever set up.
    ///
    /// Where the deployment is set up, a majority is enough; absent nodes are tried again in the background.
    ///
    /// # Errors
    /// - [`InvalidOptions`](leasehold_core::ErrorKind::InvalidOptions) for fewer than three nodes, an even number of nodes, or
    ///   one server twice.
    /// - [`Unavailable`](leasehold_core::ErrorKind::Unavailable) if no majority can be reached, and
    ///   [`Backend`](leasehold_core::ErrorKind::Backend) if so many nodes refuse that there is no majority, with
    ///   [`QuorumNotReached`](crate::QuorumNotReached) as the source.
    ///
    /// No error shows a password.
    ///
    /// # Cancel safety
    /// Dropping the future leaves no connection behind. A new deployment may be set up by half; the next program that
    /// connects completes it.
    pub async fn connect(self) -> Result<Redlock> {
        let settings = EngineOptions::new().local_handoff(self.local_handoff);
        Ok(Redlock::with(self.backend().await?, settings))
    }

    /// Connects like [`connect`](Self::connect), and returns only the store-level backend, without an engine.
    ///
    /// # Errors
    /// The same as for [`connect`](Self::connect).
    pub async fn backend(self) -> Result<RedlockBackend> {
        self.open().await.map_err(|error| error.with_backend(NAME))
    }

    async fn open(self) -> Result<RedlockBackend> {
        check_setting("node_limit", self.node_limit, Duration::from_millis(10), Duration::from_secs(10))?;
        check_setting("drift", self.drift, Duration::ZERO, Duration::from_secs(10))?;
        let (day, ten_years) = (Duration::from_secs(24 * 3600), Duration::from_secs(3650 * 24 * 3600));
        check_setting("fence_retention", self.fence_retention, day, ten_years)?;
        let (endpoints, namespace) = self.endpoints()?;
        let command_timeout = self.node_limit.max(self.connection.command_timeout);
        let settings = ConnectionSettings { command_timeout, ..self.connection };
        let clock = Clock::system();
        let node =
            |endpoint| Node::new(endpoint, namespace.clone(), settings.clone(), self.fence_retention, clock.clone());
        let nodes = Arc::new(Nodes::new(endpoints.into_iter().map(node).collect()));
        membership::connect(&nodes).await?;
        let background = Arc::new(BackgroundTasks::new());
        let pending_releases = Arc::new(PendingReleases::new(&nodes, self.node_limit, &clock));
        let context = Context {
            nodes: Arc::clone(&nodes),
            releases: Arc::clone(&pending_releases),
            background: Arc::clone(&background),
            clock: clock.clone(),
            fencing: self.fencing,
            marker: namespace.own(MARKER),
            fence_retention: self.fence_retention,
        };
        let store = Store {
            fleet: Fleet::new(context, settings.group_commit),
            pending_releases,
            nodes,
            namespace,
            fencing: self.fencing,
            drift: self.drift,
            node_limit: self.node_limit,
            command_timeout,
            clock,
            attempts: Arc::new(AttemptsInFlight::default()),
            background,
        };
        Ok(RedlockBackend::new(store, self.auto_repair))
    }

    fn endpoints(&self) -> Result<(Vec<Endpoint>, Namespace)> {
        let namespace = self.connection.namespace.clone().map(Namespace::new).transpose()?;
        let endpoints = self.nodes.iter().map(Endpoint::of).collect::<Result<Vec<Endpoint>>>()?;
        let urls = self.nodes.iter().zip(&endpoints).filter(|(source, _)| matches!(source, Source::Url(_)));
        let mut named: Vec<Option<&Namespace>> = urls.map(|(_, endpoint)| endpoint.namespace()).collect();
        named.dedup();
        let namespace = match (namespace, &named[..]) {
            (Some(namespace), _) => namespace,
            (None, [] | [None]) => Namespace::default(),
            (None, [Some(one)]) => (*one).clone(),
            (None, _) => return Err(invalid("the nodes' URLs name different namespaces")),
        };
        if endpoints.len() < 3 || endpoints.len().is_multiple_of(2) {
            let count = endpoints.len();
            return Err(invalid(format!("{count} nodes; it takes 3, 5, 7 or another odd number of servers")));
        }
        let mut shown: Vec<String> = endpoints.iter().map(ToString::to_string).collect();
        shown.sort_unstable();
        if let Some([one, _]) = shown.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(invalid(format!("{one} is there twice: its votes are one vote")));
        }
        if let Some(endpoint) = endpoints.iter().find(|endpoint| !endpoint.is_one_server()) {
            // Behind either, a fail-over would lose votes without a trace.
            return Err(invalid(format!("{endpoint}: a node is one server, not a Sentinel set or a Cluster")));
        }
        Ok((endpoints, namespace))
    }
}

/// The error for settings that make no deployment.
fn invalid(detail: impl Into<String>) -> Error {
    Error::new(ErrorKind::InvalidOptions, "connect").detail(detail)
}

impl Default for RedlockBuilder {
    fn default() -> Self {
        Self {
            nodes: Vec::new(),
            connection: ConnectionSettings::default(),
            fencing: true,
            node_limit: Duration::from_millis(200),
            drift: Duration::ZERO,
            fence_retention: Duration::from_secs(7 * 24 * 3600),
            local_handoff: LocalHandoff::new(),
            auto_repair: false,
        }
    }
}

impl Redlock {
    /// Connects with default settings to the nodes of `redlock:redis://a,redis://b,redis://c`. See [`RedlockBuilder::url`].
    ///
    /// # Errors
    /// The same as for [`RedlockBuilder::connect`].
    ///
    /// # Cancel safety
    /// The same as for [`RedlockBuilder::connect`].
    pub async fn connect(url: &str) -> Result<Self> {
        Self::builder().url(url).connect().await
    }

    /// Creates a builder, for connecting with other settings or to a list of nodes.
    pub fn builder() -> RedlockBuilder {
        RedlockBuilder::default()
    }

    /// Uses clients that the caller made, connected and will close, one for each node, in the namespace `leasehold`.
    ///
    /// The clients need a reconnection policy: by default they never come back after a lost connection.
    ///
    /// # Errors
    /// The same as for [`RedlockBuilder::connect`].
    ///
    /// # Cancel safety
    /// The same as for [`RedlockBuilder::connect`].
    pub async fn from_clients(clients: impl IntoIterator<Item = Client>) -> Result<Self> {
        Self::builder().clients(clients).connect().await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(builder: &RedlockBuilder) -> String {
        let error = builder.endpoints().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidOptions, "{error}");
        let told = format!("{error} {builder:?}");
        assert!(!told.contains("hunter2"), "{told}");
        told
    }

    fn of(url: &str) -> RedlockBuilder {
        Redlock::builder().url(url)
    }

    #[test]
    fn deployments_that_are_no_quorum_are_refused_before_anything_is_sent() {
        for (url, why) in [
            ("redlock:", "cannot be read"),
            ("redlock:redis://:hunter2@a,redis://b", "2 nodes"),
            ("redlock:redis://a,redis://b,redis://c,redis://:hunter2@d", "4 nodes"),
            ("redlock:redis://a,redis://b,redis://:hunter2@a:6379", "twice"),
            ("redlock:redis://a,redis://b,redis-cluster://c", "not a Sentinel set or a Cluster"),
            ("redlock:redis://a,redis://b,redis-sentinel://:hunter2@c?sentinelServiceName=m", "not a Sentinel set"),
            ("redlock:redis://a?namespace=x,redis://b?namespace=y,redis://c", "different namespaces"),
            ("redlock:redis://a,redis://b,http://:hunter2@c", "unknown scheme"),
            ("redlock:redis://a,redis://b,redis://u:12?hunter2@c", "percent-encode"),
        ] {
            let told = refused(&of(url));
            assert!(told.contains(why), "{told}");
        }
        assert!(refused(&Redlock::builder()).contains("0 nodes"));
    }

    #[test]
    fn nodes_are_read_from_one_text_or_from_a_list() {
        let (endpoints, namespace) = of("redlock:redis://a, redis://:pw@b:1,redis://c").endpoints().unwrap();
        let shown: Vec<_> = endpoints.iter().map(ToString::to_string).collect();
        assert_eq!(shown, ["redis://a:6379", "redis://b:1", "redis://c:6379"]);
        assert_eq!(namespace.to_string(), "leasehold");
        let listed = Redlock::builder().nodes(["a", "b", "c"].map(|host| format!("redis://{host}?namespace=shop")));
        assert_eq!(listed.endpoints().unwrap().1.to_string(), "shop");
        assert_eq!(listed.namespace("other").endpoints().unwrap().1.to_string(), "other");
    }
}
