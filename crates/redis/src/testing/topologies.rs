use super::{Server, eventually};

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

    /// How to connect.
    pub fn url(&self) -> String {
        let ports: Vec<_> = self.0.iter().map(Server::port).collect();
        format!("redis-cluster://127.0.0.1:{}?node=127.0.0.1:{}&node=127.0.0.1:{}", ports[0], ports[1], ports[2])
    }
}

/// A primary, a replica, and three Sentinels that watch over them.
#[derive(Debug)]
pub struct Sentinels {
    /// The first primary.
    pub primary: Server,
    /// Its replica.
    pub replica: Server,
    watchers: Vec<Server>,
}

impl Sentinels {
    /// Starts them, and waits until the replica is in step and the Sentinels know each other. `None` as for
    /// [`Server::start`].
    ///
    /// # Panics
    /// When they do not within a minute.
    pub async fn start() -> Option<Self> {
        let primary = Server::start(&["--repl-diskless-sync-delay", "0"]).await?;
        let port = primary.port().to_string();
        let replica = Server::start(&["--replicaof", &format!("127.0.0.1 {port}")]).await?;
        let in_step = async || replica.ask(&["INFO", "replication"]).await.text().contains("master_link_status:up");
        eventually("the replica is in step", in_step).await;
        let mut watchers = Vec::new();
        for _ in 0..3 {
            let sentinel = Server::start(&["--sentinel"]).await?;
            sentinel.ask(&["SENTINEL", "MONITOR", "main", "127.0.0.1", &port, "2"]).await;
            sentinel.ask(&["SENTINEL", "SET", "main", "down-after-milliseconds", "1000"]).await;
            sentinel.ask(&["SENTINEL", "SET", "main", "failover-timeout", "3000"]).await;
            watchers.push(sentinel);
        }
        for sentinel in &watchers {
            let knows = async || {
                let known = sentinel.ask(&["INFO", "sentinel"]).await;
                known.text().contains("slaves=1,sentinels=3")
            };
            eventually("the Sentinels know each other", knows).await;
        }
        Some(Self { primary, replica, watchers })
    }

    /// How to connect.
    pub fn url(&self) -> String {
        let ports: Vec<_> = self.watchers.iter().map(Server::port).collect();
        format!(
            "redis-sentinel://127.0.0.1:{}?sentinelServiceName=main&node=127.0.0.1:{}&node=127.0.0.1:{}",
            ports[0], ports[1], ports[2]
        )
    }
}
