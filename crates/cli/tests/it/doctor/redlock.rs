use leasehold_testkit::redis::Server;
use leasehold_testkit::{needs, test};

use super::{doctor, wait_for};
use crate::support::Place;

fn servers(count: usize) -> Vec<Server> {
    let arguments = ["--appendonly", "yes", "--appendfsync", "always"];
    (0..count).map(|_| needs("redis-server", Server::start_blocking(&arguments))).collect()
}

fn url_of<'s>(nodes: impl IntoIterator<Item = &'s Server>) -> String {
    format!("redlock:{}", nodes.into_iter().map(Server::url).collect::<Vec<_>>().join(","))
}

#[test]
fn what_takes_a_vote_from_a_node_is_found() {
    let mut nodes = servers(4);
    let three = url_of(&nodes[..3]);
    doctor(&three, &[]).is_well();

    // One server under two addresses: its two votes would be a majority.
    let twice = url_of([&nodes[0], &nodes[1], &nodes[1]]);
    let said = doctor(&twice, &[]);
    assert_eq!((said.code, said.finding("same-server").0), (2, "error"), "{said:?}");
    assert!(said.finding("same-server").1.contains(&nodes[1].port().to_string()), "{said:?}");
    doctor(&three, &[]).is_rid_of("same-server");

    for few in [url_of(&nodes[..2]), url_of(&nodes)] {
        let said = doctor(&few, &[]);
        assert_eq!((said.code, said.finding("node-count").0), (2, "error"), "{said:?}");
    }

    // Each node by itself.
    wait_for(nodes[2].ask(&["CONFIG", "SET", "appendfsync", "everysec"]));
    let said = doctor(&three, &[]);
    assert_eq!((said.code, said.bad("persistence").len()), (1, 1), "{said:?}");
    wait_for(nodes[2].ask(&said.finding("persistence").1.split(' ').collect::<Vec<_>>()));
    doctor(&three, &[]).is_well();

    let place = Place::at(&three);
    assert_eq!(place.code(&["run", "--ttl", "1s", "k", "true"]), 0);
    wait_for(nodes[0].ask(&["FLUSHALL"]));
    let said = doctor(&three, &["--ttl", "1s"]);
    let (health, cure) = said.finding("node-reset");
    assert_eq!((said.code, health, cure), (2, "error", "leasehold heal"), "{said:?}");
    assert_eq!(place.code(&["heal"]), 0);
    doctor(&three, &[]).is_well();

    nodes[1].kill();
    let said = doctor(&three, &[]);
    assert_eq!((said.code, said.finding("node-unreachable").0), (1, "warning"), "{said:?}");
    nodes[1].restart_blocking();
    doctor(&three, &[]).is_rid_of("node-unreachable");
}
