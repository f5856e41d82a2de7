use leasehold_testkit::redis::Server;
use leasehold_testkit::{needs, test};

use super::{doctor, doctor_with};
use crate::support::{Place, wait_for};

fn url_of<'s>(nodes: impl IntoIterator<Item = &'s Server>) -> String {
    format!("redlock:{}", nodes.into_iter().map(Server::url).collect::<Vec<_>>().join(","))
}

#[test]
fn what_takes_a_vote_from_a_node_is_found() {
    let arguments = ["--appendonly", "yes", "--appendfsync", "always"];
    let mut nodes = [(); 4].map(|()| needs("redis-server", Server::start_blocking(&arguments)));
    let three = url_of(&nodes[..3]);
    doctor(&three).is_well();

    // One server under two addresses: its two votes would be a majority.
    let said = doctor(&url_of([&nodes[0], &nodes[1], &nodes[1]]));
    assert!(said.has("same-server", "error").contains(&nodes[1].port().to_string()), "{said:?}");
    doctor(&three).is_rid_of("same-server");

    for few in [url_of(&nodes[..2]), url_of(&nodes)] {
        doctor(&few).has("node-count", "error");
    }

    // Each node by itself.
    wait_for(nodes[2].ask(&["CONFIG", "SET", "appendfsync", "everysec"]));
    let said = doctor(&three);
    let cure: Vec<_> = said.has("persistence", "warning").split(' ').collect();
    assert_eq!((said.code, said.bad("persistence").len()), (1, 1), "{said:?}");
    wait_for(nodes[2].ask(&cure));
    doctor(&three).is_well();

    let place = Place::at(&three);
    assert_eq!(place.code("run --ttl 1s k true"), 0);
    wait_for(nodes[0].ask(&["FLUSHALL"]));
    assert_eq!(doctor_with(&three, "--ttl 1s").has("node-reset", "error"), "leasehold heal");
    assert_eq!(place.code("heal"), 0);
    doctor(&three).is_well();

    nodes[1].kill();
    let said = doctor(&three);
    said.has("node-unreachable", "warning");
    assert_eq!(said.code, 1, "{said:?}");
    nodes[1].restart_blocking();
    doctor(&three).is_rid_of("node-unreachable");
}
