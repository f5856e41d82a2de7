//! What closing promises where the server is silent, on private servers; without them it is ignored.

use leasehold_core::Backend;
use leasehold_redlock::{Backed, Redlock};
use leasehold_testkit::redis::Server;
use leasehold_testkit::{Silenced, needs, test};

/// With so many of three nodes silent.
async fn closing(silent: usize) {
    let mut servers = Vec::new();
    for _ in 0..3 {
        servers.push(needs("redis-server", Server::start(&[]).await));
    }
    let connect = async || Redlock::builder().nodes(servers.iter().map(Server::url)).connect().await.unwrap();
    let (ours, theirs) = (connect().await, connect().await);
    let answers_within = ours.engine().backend().answers_within();
    let silenced = Silenced { beside: ours.clone(), ours: ours.clone(), theirs, answers_within };
    silenced.closing_ends(|| servers.iter().take(silent).for_each(Server::pause), ours.close()).await;
}

#[test(multi_thread)]
async fn closing_ends_while_most_nodes_are_silent() {
    closing(2).await;
}
