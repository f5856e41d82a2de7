use super::server::Server;
use crate::launch::redis as launcher;
use crate::private::blocking;

/// Three servers that share the hash slots.
#[derive(Debug)]
pub struct Cluster(Vec<Server>);

impl Cluster {
    /// Starts the Cluster, and waits until all nodes agree about it. `None`: `redis-server` is not installed.
    pub async fn start() -> Option<Self> {
        blocking(|| Server::all(launcher::start_cluster)).await.map(Self)
    }

    /// The nodes, in the order of their slots.
    pub fn nodes(&self) -> &[Server] {
        &self.0
    }

    /// The nodes, to end one.
    pub fn nodes_mut(&mut self) -> &mut [Server] {
        &mut self.0
    }

    /// How to connect.
    pub fn url(&self) -> String {
        launcher::cluster_url(&self.0.iter().map(Server::port).collect::<Vec<_>>())
    }

    /// Which node serves an entry of this name as long as no slot has moved.
    pub async fn home(&self, name: &str) -> usize {
        let slot = self.0[0].ask(&["CLUSTER", "KEYSLOT", name]).await.number();
        usize::from(slot > 5460) + usize::from(slot > 10922)
    }

    /// Begins to move the slot of `name` to the next node, as tools that rebalance do.
    pub async fn begin_to_move(&self, name: &str) -> Moving<'_> {
        let home = self.home(name).await;
        let (source, target) = (&self.0[home], &self.0[(home + 1) % 3]);
        let slot = source.ask(&["CLUSTER", "KEYSLOT", name]).await.number().to_string();
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
    pub async fn take_along(&self, name: &str) {
        let port = self.target.port().to_string();
        assert_eq!(self.source.ask(&["MIGRATE", "127.0.0.1", &port, name, "0", "5000"]).await.text(), "OK");
    }

    /// Makes it final, on all nodes.
    pub async fn end(self) {
        for node in self.cluster.nodes() {
            assert_eq!(node.ask(&["CLUSTER", "SETSLOT", &self.slot, "NODE", &self.target_id]).await.text(), "OK");
        }
    }
}
