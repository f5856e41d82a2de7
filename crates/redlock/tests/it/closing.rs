//! What closing promises where most nodes are silent.

use leasehold_core::Backend;
use leasehold_redlock::Backed;
use leasehold_testkit::redis::Server;
use leasehold_testkit::{Silenced, needs, test};

use crate::bench::Nodes;

#[test(multi_thread)]
async fn closing_ends_while_most_nodes_are_silent() {
    let nodes = needs("redis-server", Nodes::start(3).await);
    let (ours, theirs) = (nodes.redlock().await, nodes.redlock().await);
    let answers_within = ours.engine().backend().answers_within();
    let silenced = Silenced { beside: ours.clone(), ours: ours.clone(), theirs, answers_within };
    silenced.closing_ends(|| nodes.0.iter().take(2).for_each(Server::pause), ours.close()).await;
}
