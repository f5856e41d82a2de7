use super::server::Server;
use crate::Proxy;
use crate::launch::redis as launcher;
use crate::private::blocking;
use crate::waiting::eventually;

/// A primary, its replicas, and three Sentinels that watch over them.
#[derive(Debug)]
pub struct Sentinels {
    /// The first primary.
    pub primary: Server,
    /// Its replicas.
    pub replicas: Vec<Server>,
    /// Between the first primary and everybody else, if there is one.
    network: Option<Proxy>,
    watchers: Vec<Server>,
}

impl Sentinels {
    /// Starts them with one replica, and waits until it is in step and the Sentinels know each other. `None` as for
    /// [`Server::start`].
    pub async fn start() -> Option<Self> {
        Self::launch(&[], 1, false).await
    }

    /// The same with two replicas, and a primary that can be [cut off](Self::cut_off). All of them get these arguments.
    pub async fn start_that_can_be_cut_off(arguments: &[&str]) -> Option<Self> {
        Self::launch(arguments, 2, true).await
    }

    async fn launch(arguments: &[&str], count: usize, can_be_cut: bool) -> Option<Self> {
        /// How long the primary may be silent, in ms.
        const PATIENCE: &str = "1000";
        let arguments = [&["--repl-diskless-sync-delay", "0"], arguments].concat();
        let primary = Server::start(&arguments).await?;
        let network = can_be_cut.then(|| Proxy::start(primary.port()));
        let port = network.as_ref().map_or(primary.port(), Proxy::port);
        let follows = format!("127.0.0.1 {port}");
        let mut replicas = Vec::new();
        for _ in 0..count {
            replicas.push(Server::start(&[&arguments[..], &["--replicaof", &follows]].concat()).await?);
        }
        for replica in &replicas {
            let in_step = async || replica.ask(&["INFO", "replication"]).await.text().contains("master_link_status:up");
            eventually("the replica is in step", in_step).await;
        }
        let launch = move || Server::all(|folder| launcher::start_sentinels(folder, port, count, PATIENCE));
        let watchers = blocking(launch).await?;
        Some(Self { primary, replicas, network, watchers })
    }

    /// How to connect.
    pub fn url(&self) -> String {
        launcher::sentinel_url(&self.watchers.iter().map(Server::port).collect::<Vec<_>>())
    }

    /// Cuts the first primary off from everybody who does not connect to its own port; connections stay open.
    pub fn cut_off(&self) {
        if let Some(network) = &self.network {
            network.refuse(true);
            network.black_hole();
        }
    }
}
