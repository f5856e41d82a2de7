use std::time::Duration;

use leasehold_redlock::{ErrorKind, Locker};
use leasehold_testkit::redis::Server;
use leasehold_testkit::{eventually, needs, test};

use crate::bench::{Nodes, acquire, lock, once, patient};

const LEASE: Duration = Duration::from_secs(60);

/// As if another had been faster there.
async fn is_anothers(node: &Server) {
    let entry = node.ask(&["GET", &lock("k")]).await.text().to_owned();
    node.ask(&["SET", &lock("k"), &("f".repeat(32) + &entry[32..]), "KEEPTTL"]).await;
}

#[test]
async fn a_lock_that_too_few_nodes_hand_off_is_nobodys_and_is_given_back() {
    let nodes = needs("redis-server", Nodes::start(3).await);
    let (here, there) = (nodes.redlock().await, nodes.redlock().await);
    let guard = acquire(&here, "k", &patient().ttl(LEASE)).await.unwrap().unwrap();
    let handed = guard.detach().unwrap();
    nodes.0[2].pause();
    is_anothers(&nodes.0[1]).await;
    let error = there.attach(&handed, &once().ttl(LEASE)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Indeterminate, "{error}");
    let is_free = async |node: usize| nodes.0[node].ask(&["EXISTS", &lock("k")]).await.number() == 0;
    eventually("what was taken over is given back", async || is_free(0).await).await;
    nodes.0[2].resume();
    eventually("also where that was heard late", async || is_free(2).await).await;
    assert!(there.attach(&handed, &once()).await.unwrap().is_none(), "what was given back was attached");
}

#[test]
async fn a_take_over_that_comes_too_late_releases_what_a_few_nodes_gave() {
    let nodes = needs("redis-server", Nodes::start(3).await);
    let (here, there) = (nodes.redlock().await, nodes.redlock().await);
    for slow in 0..3 {
        let guard = acquire(&here, "k", &patient().ttl(LEASE)).await.unwrap().unwrap();
        let handed = guard.detach().unwrap();
        let faster = (0..3).filter(|node| *node != slow);
        for node in faster.clone() {
            is_anothers(&nodes.0[node]).await;
        }
        assert!(there.attach(&handed, &once().ttl(LEASE)).await.unwrap().is_none(), "two have it");
        let is_free = async || nodes.0[slow].ask(&["EXISTS", &lock("k")]).await.number() == 0;
        eventually("what one node gave is given back", is_free).await;
        for node in faster {
            assert_eq!(nodes.0[node].ask(&["DEL", &lock("k")]).await.number(), 1, "what the faster one has is gone");
        }
    }
}

#[test]
async fn a_lock_is_handed_off_while_a_minority_is_silent() {
    let nodes = needs("redis-server", Nodes::start(3).await);
    let (here, there) = (nodes.redlock().await, nodes.redlock().await);
    let guard = acquire(&here, "k", &patient().ttl(LEASE)).await.unwrap().unwrap();
    nodes.0[2].pause();
    let (token, handed) = (guard.fencing_token(), guard.detach().unwrap());
    let attached = there.attach(&handed, &once().ttl(LEASE)).await.unwrap().unwrap();
    assert_eq!(attached.fencing_token(), token);
    assert!(here.attach(&handed, &once()).await.unwrap().is_none(), "two have it");
    attached.renew().await.unwrap();
    nodes.0[2].resume();
    attached.release().await.unwrap();
    acquire(&here, "k", &patient()).await.unwrap().unwrap().release().await.unwrap();
}
