use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use leasehold_core::{Clock, EngineOptions, LocalHandoff, Result};
use leasehold_redis::fred::clients::Client;
use leasehold_redis::fred::interfaces::ClientLike;
use leasehold_redis::fred::types::config::ServerConfig;
use leasehold_redis::{
    DEFAULT_COMMAND_TIMEOUT, DEFAULT_FENCE_RETENTION, Endpoint, Names, Namespace, check, check_fence_retention, invalid,
};

use crate::attempt::AttemptsInFlight;
use crate::backend::{NAME, RedlockBackend};
use crate::background_tasks::BackgroundTasks;
use crate::locker::Redlock;
use crate::membership;
use crate::node::{Node, Source};
use crate::nodes::Nodes;
use crate::pending_releases::PendingReleases;
use crate::store::Store;

/// Settings of a [`Redlock`]. Nothing is checked or sent before [`connect`](Self::connect).
#[derive(Clone)]
#[must_use]
pub struct RedlockBuilder {
    urls: Vec<String>,
    clients: Vec<Client>,
    namespace: Option<String>,
    fencing: bool,
    node_limit: Duration,
    drift: Duration,
    fence_retention: Duration,
    group_commit: bool,
    local_handoff: LocalHandoff,
}

impl RedlockBuilder {
    /// All nodes in one text, separated by commas: `redlock:redis://a,redis://b,redis://c`. Adds to those there are.
    ///
    /// A comma in a password is written `%2C`.
    pub fn url(mut self, url: &str) -> Self {
        let nodes = url.strip_prefix("redlock:").unwrap_or(url);
        self.urls.extend(nodes.split(',').map(|url| url.trim().to_owned()));
        self
    }

    /// The nodes, `redis://[[user]:password@]host[:port][/database][?namespace=…]` each, with TLS `rediss://…` and
    /// `?cacert=FILE`, `?cert=FILE&key=FILE` as elsewhere: an odd number from 3 on, each a server of its own. Adds to those there are.
    pub fn nodes<U: Into<String>>(mut self, urls: impl IntoIterator<Item = U>) -> Self {
        self.urls.extend(urls.into_iter().map(Into::into));
        self
    }

    /// Nodes by clients that the caller made, connected and will close. Adds to those there are.
    pub fn clients(mut self, clients: impl IntoIterator<Item = Client>) -> Self {
        self.clients.extend(clients);
        self
    }

    /// Keeps the keys of programs that share the nodes apart: 1 to 64 bytes. Wins over the URLs'; default `leasehold`.
    pub fn namespace(self, namespace: impl Into<String>) -> Self {
        Self { namespace: Some(namespace.into()), ..self }
    }

    /// Whether grants carry tokens, which takes a second round; default yes.
    ///
    /// All programs that share keys must agree: a token of one protects nothing against another that has none.
    pub fn fencing(self, fencing: bool) -> Self {
        Self { fencing, ..self }
    }

    /// How long one node may take for an answer, from 10 ms to 10 s; default 200 ms. Never more than a tenth of the
    /// lease, or a third of one below a second, up to 100 ms.
    pub fn node_limit(self, limit: Duration) -> Self {
        Self { node_limit: limit, ..self }
    }

    /// How much longer than the guard believes the nodes keep a lease, from 0 to 10 s; default 0.
    ///
    /// In addition to the margin of 1 % of the lease and 2 ms that every guard keeps. For nodes whose clocks are set
    /// in steps: a step of one node's clock up to this breaks no lease.
    pub fn drift(self, drift: Duration) -> Self {
        Self { drift, ..self }
    }

    /// How long the counter of a key is kept after its last grant, from a day to ten years; default 7 days.
    ///
    /// A counter that is gone starts again at the nodes' clocks, so tokens repeat only if those were set back,
    /// or if the key was granted more than 1,000 times a second on average, and so was ahead of them.
    pub fn fence_retention(self, retention: Duration) -> Self {
        Self { fence_retention: retention, ..self }
    }

    /// Whether requests to a node that come in while others are on their way leave together, as one script; default yes.
    pub fn group_commit(self, group_commit: bool) -> Self {
        Self { group_commit, ..self }
    }

    /// How far grants pass from guard to guard inside this process; see [`LocalHandoff`].
    pub fn local_handoff(self, local_handoff: LocalHandoff) -> Self {
        Self { local_handoff, ..self }
    }

    /// Checks the settings, connects to all nodes, checks that each is a server of its own, and sets up a new
    /// deployment: that only if all nodes answer and none was ever set up.
    ///
    /// A majority is enough afterwards; the others are tried again in the background.
    ///
    /// # Errors
    /// [`InvalidOptions`](leasehold_core::ErrorKind::InvalidOptions) for fewer than three nodes, an even number, or one server twice;
    /// [`Unavailable`](leasehold_core::ErrorKind::Unavailable) or [`Backend`](leasehold_core::ErrorKind::Backend) when no majority can be reached or
    /// lets us in, with [`QuorumNotReached`](crate::QuorumNotReached) as the source. None of them shows a password.
    ///
    /// # Cancel safety
    /// Dropping the future leaves no connection behind. A new deployment may be set up by half; the next one that
    /// connects goes on with it.
    pub async fn connect(self) -> Result<Redlock> {
        let settings = EngineOptions::new().local_handoff(self.local_handoff);
        Ok(Redlock::with(self.backend().await?, settings))
    }

    /// As [`connect`](Self::connect), but only the store-level backend, without an engine.
    ///
    /// # Errors
    /// As for [`connect`](Self::connect).
    pub async fn backend(self) -> Result<RedlockBackend> {
        self.open().await.map_err(|error| error.with_backend(NAME))
    }

    async fn open(self) -> Result<RedlockBackend> {
        check("node_limit", self.node_limit, Duration::from_millis(10), Duration::from_secs(10))?;
        check("drift", self.drift, Duration::ZERO, Duration::from_secs(10))?;
        check_fence_retention(self.fence_retention, Duration::from_secs(24 * 3600))?;
        let (sources, namespace) = self.sources()?;
        let names = Names::new(&namespace);
        let command_timeout = self.node_limit.max(DEFAULT_COMMAND_TIMEOUT);
        let node = |source| Node::new(source, names.clone(), self.fence_retention, command_timeout, self.group_commit);
        let nodes = Arc::new(Nodes::new(sources.into_iter().map(node).collect()));
        membership::connect(&nodes).await?;
        let clock = Clock::system();
        Ok(RedlockBackend::new(Store {
            pending_releases: Arc::new(PendingReleases::new(&nodes, self.node_limit, &clock)),
            nodes,
            names,
            fencing: self.fencing,
            drift: self.drift,
            node_limit: self.node_limit,
            clock,
            attempts: Arc::new(AttemptsInFlight::default()),
            background: BackgroundTasks::new(),
        }))
    }

    fn sources(&self) -> Result<(Vec<Source>, Namespace)> {
        let mut namespace = self.namespace.clone().map(Namespace::new).transpose()?;
        let endpoints = self.urls.iter().map(|url| Endpoint::parse(url)).collect::<Result<Vec<Endpoint>>>()?;
        let mut named: Vec<Option<&Namespace>> = endpoints.iter().map(Endpoint::namespace).collect();
        named.dedup();
        if namespace.is_none() {
            match named[..] {
                [] | [None] => {}
                [Some(one)] => namespace = Some(one.clone()),
                _ => return Err(invalid("the nodes' URLs name different namespaces")),
            }
        }
        let urls = endpoints.into_iter().map(Box::new).map(Source::Url);
        let sources: Vec<Source> = urls.chain(self.clients.iter().cloned().map(Source::Client)).collect();
        if sources.len() < 3 || sources.len().is_multiple_of(2) {
            return Err(invalid(format!("{} nodes; it takes 3, 5, 7 or another odd number of servers", sources.len())));
        }
        let mut shown: Vec<String> = sources.iter().map(ToString::to_string).collect();
        shown.sort_unstable();
        if let Some([one, _]) = shown.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(invalid(format!("{one} is there twice: its votes are one vote")));
        }
        if let Some(source) = sources.iter().find(|source| !source.is_one_server()) {
            // Behind either, a fail-over would lose votes without a trace.
            return Err(invalid(format!("{source}: a node is one server, not a Sentinel set or a Cluster")));
        }
        Ok((sources, namespace.unwrap_or_default()))
    }
}

impl Source {
    fn is_one_server(&self) -> bool {
        match self {
            Self::Url(endpoint) => !endpoint.to_string().split("://").next().is_some_and(|scheme| scheme.contains('-')),
            Self::Client(client) => matches!(client.client_config().server, ServerConfig::Centralized { .. }),
        }
    }
}

impl Default for RedlockBuilder {
    fn default() -> Self {
        Self {
            urls: Vec::new(),
            clients: Vec::new(),
            namespace: None,
            fencing: true,
            node_limit: Duration::from_millis(200),
            drift: Duration::ZERO,
            fence_retention: DEFAULT_FENCE_RETENTION,
            group_commit: true,
            local_handoff: LocalHandoff::new(),
        }
    }
}

impl fmt::Debug for RedlockBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedlockBuilder")
            .field("nodes", &self.urls.iter().map(|url| Endpoint::shown(url)).collect::<Vec<_>>())
            .field("clients", &self.clients.len())
            .field("namespace", &self.namespace)
            .field("fencing", &self.fencing)
            .field("node_limit", &self.node_limit)
            .field("drift", &self.drift)
            .field("fence_retention", &self.fence_retention)
            .field("group_commit", &self.group_commit)
            .field("local_handoff", &self.local_handoff)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(builder: &RedlockBuilder) -> String {
        let error = builder.sources().unwrap_err();
        assert_eq!(error.kind(), leasehold_core::ErrorKind::InvalidOptions, "{error}");
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
        let (sources, namespace) = of("redlock:redis://a, redis://:pw@b:1,redis://c").sources().unwrap();
        let shown: Vec<_> = sources.iter().map(ToString::to_string).collect();
        assert_eq!(shown, ["redis://a:6379", "redis://b:1", "redis://c:6379"]);
        assert_eq!(namespace.as_str(), "leasehold");
        let listed = Redlock::builder().nodes(["a", "b", "c"].map(|host| format!("redis://{host}?namespace=shop")));
        assert_eq!(listed.sources().unwrap().1.as_str(), "shop");
        assert_eq!(listed.namespace("other").sources().unwrap().1.as_str(), "other");
    }
}
