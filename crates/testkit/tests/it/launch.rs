//! What keeps servers apart.

use std::collections::BTreeSet;

use leasehold_testkit::launch::{Identity, free_port};
use leasehold_testkit::test;

#[test]
fn no_port_is_given_out_twice() {
    let ports: BTreeSet<u16> = (0..50).map(|_| free_port().expect("a free port")).collect();
    assert_eq!(ports.len(), 50);
}

#[test]
fn a_stranger_with_a_servers_id_is_not_that_server() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("process"), format!("{} 1 redis-server\n", std::process::id())).unwrap();
    let stranger = Identity::read(folder.path()).expect("it is the identity of a server");
    assert!(!stranger.is_running());
}
