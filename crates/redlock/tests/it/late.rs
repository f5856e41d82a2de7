//! Claims that reach nodes late, on connections that were given up, behind what was sent after them.

use std::time::Duration;

use leasehold_redlock::core::Clock;
use leasehold_redlock::{LockGuard, Redlock};
use leasehold_testkit::{Proxy, eventually, needs, test};
use tokio::time::sleep;

use crate::bench::{Nodes, acquire, once, take};

/// Nodes, each behind a network of its own, and a locker that reaches them through it. Attempts fail for no other reason
/// than those networks.
async fn behind_proxies(count: usize) -> Option<(Nodes, Vec<Proxy>, Redlock)> {
    let nodes = Nodes::start(count).await?;
    nodes.redlock().await.close().await;
    let proxies: Vec<_> = nodes.0.iter().map(|node| Proxy::start(node.port())).collect();
    let locks = Redlock::builder().nodes(nodes.urls_through(&proxies)).connect().await.unwrap();
    take(&locks, "warm").await.release().await.unwrap();
    eventually("the last release", async || nodes.having("warm").await == 0).await;
    Some((nodes, proxies, locks))
}

/// One attempt whose claims these networks keep, and with them the connections that they came on. Kept, what it won.
async fn kept_back(proxies: &[Proxy], locks: &Redlock) -> Option<LockGuard> {
    let before: Vec<u64> = proxies.iter().map(Proxy::held).collect();
    proxies.iter().for_each(Proxy::hold_requests);
    let trying = tokio::spawn({
        let locks = locks.clone();
        async move { acquire(&locks, "k", &once()).await }
    });
    let kept = async || proxies.iter().zip(&before).all(|(proxy, before)| proxy.held() > *before);
    eventually("the claims are on their way", kept).await;
    proxies.iter().for_each(Proxy::cut);
    trying.await.unwrap().unwrap_or_default()
}

/// Lets them arrive, and waits until each of these nodes has carried its claim out.
async fn arrive(nodes: &Nodes, proxies: &[Proxy]) {
    let mut before = Vec::new();
    for node in &nodes.0[..proxies.len()] {
        before.push(node.calls("set").await);
    }
    proxies.iter().for_each(Proxy::release);
    for (node, before) in nodes.0.iter().zip(before) {
        eventually("the late claim is carried out", async || node.calls("set").await > before).await;
    }
}

#[test]
async fn claims_that_come_late_keep_a_key_for_as_long_as_they_were_late_and_not_for_their_lease() {
    for count in [3, 5] {
        let (nodes, proxies, locks) = needs("redis-server", behind_proxies(count).await);
        let others = nodes.redlock().await;
        assert!(kept_back(&proxies, &locks).await.is_none(), "it was granted by nobody");
        // All nodes answer again, and have said by now that there is nothing to give back.
        take(&locks, "k").await.release().await.unwrap();
        sleep(Duration::from_millis(700)).await;
        arrive(&nodes, &proxies).await;
        let waited = take(&others, "k").await;
        assert!(waited.is_held());
        waited.release().await.unwrap();
        eventually("all nodes are free", async || nodes.having("k").await == 0).await;
    }
}

#[test]
async fn a_claim_that_comes_late_to_a_minority_goes_back_once_its_lock_is_released_and_not_before() {
    let (nodes, proxies, locks) = needs("redis-server", behind_proxies(3).await);
    let (clock, proxies) = (Clock::system(), &proxies[..1]);
    let guard = kept_back(proxies, &locks).await.expect("the others grant");
    arrive(&nodes, proxies).await;
    // What is told after one second and after three more would be told by then.
    let began = clock.now();
    while clock.now().since(began) < Duration::from_secs(4) {
        assert_eq!(nodes.having("k").await, 3, "a lock that is held was given back");
        sleep(Duration::from_millis(20)).await;
    }
    assert!(guard.is_held());
    guard.release().await.unwrap();
    eventually("all nodes are free", async || nodes.having("k").await == 0).await;

    let guard = kept_back(proxies, &locks).await.expect("the others grant");
    guard.release().await.unwrap();
    sleep(Duration::from_millis(700)).await;
    arrive(&nodes, proxies).await;
    eventually("all nodes are free", async || nodes.having("k").await == 0).await;
}
