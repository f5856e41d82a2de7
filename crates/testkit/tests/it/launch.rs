//! What keeps servers apart.

use std::collections::BTreeSet;

use leasehold_testkit::launch::free_port;
use leasehold_testkit::test;

#[test]
fn no_port_is_given_out_twice() {
    let ports: BTreeSet<u16> = (0..50).map(|_| free_port().expect("a free port")).collect();
    assert_eq!(ports.len(), 50);
}
