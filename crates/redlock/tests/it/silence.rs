use std::error::Error as _;
use std::time::Duration;

use leasehold_redlock::core::Clock;
use leasehold_redlock::{LossReason, NodeCondition, QuorumNotReached, Redlock};
use leasehold_testkit::redis::Server;
use leasehold_testkit::{Proxy, eventually, needs, test};

use crate::bench::{Nodes, acquire, conditions, cycle, deployment, once, patient, take, unavailable};

#[test]
async fn three_of_five_stopped_nodes_are_no_quorum_and_nothing_is_left_behind() {
    let (nodes, locks) = deployment(5).await;
    cycle(&locks, "k").await;
    nodes.0[..3].iter().for_each(Server::pause);
    let error = unavailable(&locks, "k").await;
    let told = error.to_string();
    assert!(told.contains("quorum not reached: 2 of 5 nodes answered, 3 must: redis://127.0.0.1:"), "{told}");
    let quorum = error.source().unwrap().downcast_ref::<QuorumNotReached>().unwrap();
    assert_eq!((quorum.answered, quorum.needed, quorum.nodes, quorum.failures.len()), (2, 3, 5, 3));
    nodes.0[..3].iter().for_each(Server::resume);
    eventually("all nodes are free", async || nodes.having("k").await == 0).await;
    cycle(&locks, "k").await;
}

#[test]
async fn a_held_lock_outlives_a_minority_and_is_lost_in_time_with_a_majority() {
    let (nodes, locks) = deployment(5).await;
    let lease = Duration::from_millis(1500);
    let guard = acquire(&locks, "k", &patient().ttl(lease)).await.unwrap().unwrap();
    nodes.0[..2].iter().for_each(Server::pause);
    let (clock, began) = (Clock::system(), Clock::system().now());
    while clock.now().since(began) < lease * 2 {
        assert!(guard.is_held(), "lost with a minority: {:?}", guard.loss());
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    nodes.0[2].pause();
    assert_eq!(guard.lost().await, LossReason::Unreachable);
    nodes.0[..3].iter().for_each(Server::resume);
    take(&locks, "k").await.release().await.unwrap();
}

#[test]
async fn a_release_wakes_a_waiter_with_a_minority_down() {
    let mut nodes = needs("redis-server", Nodes::start(5).await);
    let (ours, theirs) = (nodes.redlock().await, nodes.redlock().await);
    nodes.0[0].pause();
    nodes.0[1].kill();
    let guard = take(&ours, "k").await;
    let waiting = tokio::spawn(async move { take(&theirs, "k").await });
    // Subscribed on the three that are left.
    for node in &nodes.0[2..] {
        let channel = "{leasehold:k}:freed";
        eventually("the waiter listens", async || {
            format!("{:?}", node.ask(&["PUBSUB", "NUMSUB", channel]).await).contains("Number(1)")
        })
        .await;
    }
    guard.release().await.unwrap();
    drop(waiting.await.unwrap());
    nodes.0[0].resume();
}

#[test]
async fn a_node_that_is_slow_while_another_comes_back_goes_on_taking_part() {
    let nodes = needs("redis-server", Nodes::start(5).await);
    nodes.redlock().await.close().await;
    let slow = Proxy::start(nodes.0[0].port());
    let urls = nodes.0[1..].iter().map(Server::url);
    nodes.0[4].pause();
    let locks =
        Redlock::builder().nodes(std::iter::once(slow.url(&nodes.0[0].url())).chain(urls)).connect().await.unwrap();
    // Beyond every limit.
    slow.delay(Duration::from_secs(20));
    nodes.0[4].resume();
    eventually("the other one takes part", async || conditions(&locks).await[4] == NodeCondition::Serving).await;
    let told = format!("{locks:?}");
    assert!(!told.contains("condition: Unreachable"), "{told}");
    // With another away, its vote is needed as soon as it comes.
    nodes.0[1..3].iter().for_each(Server::pause);
    slow.delay(Duration::ZERO);
    slow.cut();
    take(&locks, "k").await.release().await.unwrap();
    nodes.0[1..3].iter().for_each(Server::resume);
}

#[test]
async fn the_short_limit_of_one_attempt_fails_no_other_on_its_connections() {
    let nodes = needs("redis-server", Nodes::start(3).await);
    nodes.redlock().await.close().await;
    let proxies: Vec<_> = nodes.0.iter().map(|node| Proxy::start(node.port())).collect();
    let locks = Redlock::builder().nodes(nodes.urls_through(&proxies));
    let locks = locks.node_limit(Duration::from_secs(10)).connect().await.unwrap();
    for proxy in &proxies {
        proxy.delay(Duration::from_millis(200));
    }
    // The nodes may take a third of this lease, and answer later than that; what comes behind waits for them.
    let brief = once().ttl(Duration::from_millis(100));
    let (a, b, behind) = tokio::join!(acquire(&locks, "a", &brief), acquire(&locks, "b", &brief), async {
        acquire(&locks, "c", &once()).await
    },);
    assert!(a.is_err() && b.is_err(), "the nodes were in time: {a:?} {b:?}");
    let guard = behind.expect("what came behind was not sent").expect("it is free");
    assert!(guard.is_held());
}
