use super::{Proxy, Server, eventually};

/// Three servers that share the hash slots.
#[derive(Debug)]
pub struct Cluster(Vec<Server>);

impl Cluster {
    /// Starts it, and waits until all nodes agree. `None` as for [`Server::start`].
    ///
    /// # Panics
    /// When they do not within a minute.
    pub async fn start() -> Option<Self> {
        let mut nodes = Vec::new();
        for _ in 0..3 {
            nodes.push(Server::start(&["--cluster-enabled", "yes", "--cluster-node-timeout", "5000"]).await?);
        }
        let first = nodes[0].port().to_string();
        for (node, (from, to)) in nodes.iter().zip([("0", "5460"), ("5461", "10922"), ("10923", "16383")]) {
            assert_eq!(node.ask(&["CLUSTER", "ADDSLOTSRANGE", from, to]).await.text(), "OK");
            assert_eq!(node.ask(&["CLUSTER", "MEET", "127.0.0.1", &first]).await.text(), "OK");
        }
        for node in &nodes {
            let agrees = async || {
                let info = node.ask(&["CLUSTER", "INFO"]).await;
                info.text().contains("cluster_state:ok") && info.text().contains("cluster_known_nodes:3")
            };
            eventually("the nodes agree", agrees).await;
        }
        Some(Self(nodes))
    }

    /// The nodes, in the order of their slots.
    pub fn nodes(&self) -> &[Server] {
        &self.0
    }

    /// The nodes, to end one.
    pub fn nodes_mut(&mut self) -> &mut [Server] {
        &mut self.0
    }

    /// Starts another node, which serves no slot, and waits until all know it. `None` as for [`Server::start`].
    ///
    /// # Panics
    /// When they do not within a minute.
    pub async fn newcomer(&self) -> Option<Server> {
        let node = Server::start(&["--cluster-enabled", "yes", "--cluster-node-timeout", "5000"]).await?;
        let first = self.0[0].port().to_string();
        assert_eq!(node.ask(&["CLUSTER", "MEET", "127.0.0.1", &first]).await.text(), "OK");
        for known in self.0.iter().chain([&node]) {
            let knows = async || {
                let info = known.ask(&["CLUSTER", "INFO"]).await;
                info.text().contains("cluster_state:ok") && info.text().contains("cluster_known_nodes:4")
            };
            eventually("all know the newcomer", knows).await;
        }
        Some(node)
    }

    /// How to connect.
    pub fn url(&self) -> String {
        let ports: Vec<_> = self.0.iter().map(Server::port).collect();
        format!("redis-cluster://127.0.0.1:{}?node=127.0.0.1:{}&node=127.0.0.1:{}", ports[0], ports[1], ports[2])
    }

    /// Which node serves an entry of this name as long as no slot has moved.
    ///
    /// # Panics
    /// When no node answers.
    pub async fn home(&self, name: &str) -> usize {
        let slot = self.0[0].ask(&["CLUSTER", "KEYSLOT", name]).await.number();
        usize::from(slot > 5460) + usize::from(slot > 10922)
    }

    /// Begins to move the slot of `name` to the next node, as tools that rebalance do.
    ///
    /// # Panics
    /// When the nodes refuse.
    pub async fn begin_to_move(&self, name: &str) -> Moving<'_> {
        let next = (self.home(name).await + 1) % 3;
        self.begin_to_move_to(&self.0[next], name).await
    }

    /// The same, to a node that may be new.
    ///
    /// # Panics
    /// When the nodes refuse.
    pub async fn begin_to_move_to<'c>(&'c self, target: &'c Server, name: &str) -> Moving<'c> {
        let slot = self.0[0].ask(&["CLUSTER", "KEYSLOT", name]).await.number().to_string();
        let source = &self.0[self.home(name).await];
        let (source_id, target_id) = (source.ask(&["CLUSTER", "MYID"]).await, target.ask(&["CLUSTER", "MYID"]).await);
        let import = ["CLUSTER", "SETSLOT", &slot, "IMPORTING", source_id.text()];
        assert_eq!(target.ask(&import).await.text(), "OK");
        let migrate = ["CLUSTER", "SETSLOT", &slot, "MIGRATING", target_id.text()];
        assert_eq!(source.ask(&migrate).await.text(), "OK");
        Moving { cluster: self, source, target, target_id: target_id.text().to_owned(), slot }
    }
}

/// A slot on its way from node to node.
#[derive(Debug)]
pub struct Moving<'c> {
    cluster: &'c Cluster,
    /// Where it was.
    pub source: &'c Server,
    /// Where it goes.
    pub target: &'c Server,
    target_id: String,
    slot: String,
}

impl Moving<'_> {
    /// Moves one entry.
    ///
    /// # Panics
    /// When the source refuses.
    pub async fn take_along(&self, name: &str) {
        let port = self.target.port().to_string();
        assert_eq!(self.source.ask(&["MIGRATE", "127.0.0.1", &port, name, "0", "5000"]).await.text(), "OK");
    }

    /// Makes it final, on all nodes.
    ///
    /// # Panics
    /// When a node refuses.
    pub async fn end(self) {
        for node in [self.target].into_iter().chain(self.cluster.nodes()) {
            assert_eq!(node.ask(&["CLUSTER", "SETSLOT", &self.slot, "NODE", &self.target_id]).await.text(), "OK");
        }
    }
}

/// A primary, its replicas, and three Sentinels that watch over them.
#[derive(Debug)]
pub struct Sentinels {
    /// The first primary.
    pub primary: Server,
    /// Its first replica.
    pub replica: Server,
    /// Further replicas.
    pub others: Vec<Server>,
    /// Between the first primary and everybody else, if there is one.
    network: Option<Proxy>,
    watchers: Vec<Server>,
}

/// What is special about [`Sentinels`].
#[derive(Clone, Copy, Debug)]
pub struct Layout<'a> {
    /// What the first primary is started with.
    pub primary: &'a [&'a str],
    /// What the replicas are started with.
    pub replicas: &'a [&'a str],
    /// How many replicas.
    pub count: usize,
    /// How long the primary may be silent, in ms.
    pub patience: &'a str,
    /// Whether the primary can be cut off from replicas, Sentinels, and clients that ask these.
    pub can_be_cut: bool,
}

impl Default for Layout<'_> {
    fn default() -> Self {
        Self { primary: &[], replicas: &[], count: 1, patience: "1000", can_be_cut: false }
    }
}

impl Sentinels {
    /// Starts them, and waits until the replica is in step and the Sentinels know each other. `None` as for
    /// [`Server::start`].
    ///
    /// # Panics
    /// When they do not within a minute.
    pub async fn start() -> Option<Self> {
        Self::start_as(Layout::default()).await
    }

    /// The same, in a layout of one's own.
    ///
    /// # Panics
    /// As for [`start`](Self::start).
    pub async fn start_as(layout: Layout<'_>) -> Option<Self> {
        let primary = Server::start(&[&["--repl-diskless-sync-delay", "0"], layout.primary].concat()).await?;
        let network = if layout.can_be_cut { Some(Proxy::start(primary.port()).await) } else { None };
        let port = network.as_ref().map_or(primary.port(), Proxy::port).to_string();
        let follows = format!("127.0.0.1 {port}");
        let mut replicas = Vec::new();
        for _ in 0..layout.count {
            let arguments = ["--repl-diskless-sync-delay", "0", "--replicaof", &follows];
            replicas.push(Server::start(&[&arguments, layout.replicas].concat()).await?);
        }
        for replica in &replicas {
            let in_step = async || replica.ask(&["INFO", "replication"]).await.text().contains("master_link_status:up");
            eventually("the replica is in step", in_step).await;
        }
        let mut watchers = Vec::new();
        for _ in 0..3 {
            let sentinel = Server::start(&["--sentinel"]).await?;
            sentinel.ask(&["SENTINEL", "MONITOR", "main", "127.0.0.1", &port, "2"]).await;
            sentinel.ask(&["SENTINEL", "SET", "main", "down-after-milliseconds", layout.patience]).await;
            sentinel.ask(&["SENTINEL", "SET", "main", "failover-timeout", "3000"]).await;
            watchers.push(sentinel);
        }
        for sentinel in &watchers {
            let all = format!("slaves={},sentinels=3", layout.count);
            let knows = async || sentinel.ask(&["INFO", "sentinel"]).await.text().contains(&all);
            eventually("the Sentinels know each other", knows).await;
        }
        let replica = replicas.remove(0);
        Some(Self { primary, replica, others: replicas, network, watchers })
    }

    /// How to connect.
    pub fn url(&self) -> String {
        let ports: Vec<_> = self.watchers.iter().map(Server::port).collect();
        format!(
            "redis-sentinel://127.0.0.1:{}?sentinelServiceName=main&node=127.0.0.1:{}&node=127.0.0.1:{}",
            ports[0], ports[1], ports[2]
        )
    }

    /// The Sentinels.
    pub fn watchers(&self) -> &[Server] {
        &self.watchers
    }

    /// Has another server made primary, as before maintenance.
    ///
    /// # Panics
    /// When the Sentinel that is asked refuses for a minute.
    pub async fn fail_over(&self) {
        // The last in the URL, which clients that ask the first one hear of later.
        let starts = async || self.watchers[2].ask(&["SENTINEL", "FAILOVER", "main"]).await.text() == "OK";
        eventually("the fail-over begins", starts).await;
    }

    /// Cuts the first primary off from everybody who does not connect to its own port; connections stay open.
    pub fn cut_off(&self) {
        if let Some(network) = &self.network {
            network.refuse(true);
            network.stall();
        }
    }
}
