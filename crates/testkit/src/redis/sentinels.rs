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
    pub async fn start() -> Option<Self> {
        Self::start_as(Layout::default()).await
    }

    /// The same, in a layout of one's own.
    pub async fn start_as(layout: Layout<'_>) -> Option<Self> {
        let primary = Server::start(&[&["--repl-diskless-sync-delay", "0"], layout.primary].concat()).await?;
        let network = if layout.can_be_cut { Some(Proxy::start(primary.port())) } else { None };
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
        let (port, count, patience) = (port.parse().expect("a port"), layout.count, layout.patience.to_owned());
        let launch = move || Server::all(|folder| launcher::start_sentinels(folder, port, count, &patience));
        let watchers = blocking(launch).await?;
        let replica = replicas.remove(0);
        Some(Self { primary, replica, others: replicas, network, watchers })
    }

    /// How to connect.
    pub fn url(&self) -> String {
        launcher::sentinel_url(&self.watchers.iter().map(Server::port).collect::<Vec<_>>())
    }

    /// The Sentinels.
    pub fn watchers(&self) -> &[Server] {
        &self.watchers
    }

    /// Has another server made primary, as before maintenance.
    pub async fn fail_over(&self) {
        // The last in the URL, which clients that ask the first one hear of later.
        let starts = async || self.watchers[2].ask(&["SENTINEL", "FAILOVER", "main"]).await.text() == "OK";
        eventually("the fail-over begins", starts).await;
    }

    /// Cuts the first primary off from everybody who does not connect to its own port; connections stay open.
    pub fn cut_off(&self) {
        if let Some(network) = &self.network {
            network.refuse(true);
            network.black_hole();
        }
    }
}
