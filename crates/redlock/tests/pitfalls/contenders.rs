use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use leasehold_redis::testing::eventually;
use leasehold_testkit::needs;
use tokio::task::JoinSet;

use crate::bench::{Nodes, acquire, lock, once, take, token};

pub(crate) async fn ten_contenders_on_one_key_are_all_served() {
    let nodes = needs("redis-server", Nodes::start(5).await);
    let (inside, overlaps) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let mut contenders = JoinSet::new();
    for _ in 0..10 {
        // Each with connections and a queue of its own, as if in another process.
        let locks = nodes.redlock().await;
        let (inside, overlaps) = (Arc::clone(&inside), Arc::clone(&overlaps));
        contenders.spawn(async move {
            let mut tokens = Vec::new();
            for _ in 0..5 {
                let guard = take(&locks, "k").await;
                overlaps.fetch_add(inside.fetch_add(1, Ordering::SeqCst), Ordering::SeqCst);
                tokio::task::yield_now().await;
                inside.fetch_sub(1, Ordering::SeqCst);
                tokens.push(token(&guard));
                guard.release().await.unwrap();
            }
            assert!(tokens.is_sorted_by(|a, b| a < b), "{tokens:?}");
            tokens
        });
    }
    let mut tokens: Vec<u64> = contenders.join_all().await.concat();
    assert_eq!(overlaps.load(Ordering::SeqCst), 0);
    assert_eq!(tokens.len(), 50);
    tokens.sort_unstable();
    tokens.dedup();
    assert_eq!(tokens.len(), 50, "a token was given twice");
}

pub(crate) async fn a_split_vote_is_given_back_at_once() {
    let nodes = needs("redis-server", Nodes::start(5).await);
    let locks = nodes.redlock().await;
    // Two other attempts have two nodes each, so that nobody has a majority.
    for (node, digit) in nodes.0.iter().zip(["a", "a", "b", "b"]) {
        let entry = format!("{} - {{}}", digit.repeat(32));
        node.ask(&["SET", &lock("k"), &entry, "PX", "60000"]).await;
    }
    assert!(acquire(&locks, "k", &once()).await.unwrap().is_none());
    // Before it is told, unless that node was slower than all others together.
    eventually("the vote is given back", async || nodes.0[4].ask(&["EXISTS", &lock("k")]).await.number() == 0).await;
    // They give back too, and whoever waits comes by soon, not when their leases are over.
    let waiting = tokio::spawn(async move { take(&locks, "k").await.release().await });
    for node in &nodes.0[..2] {
        node.ask(&["DEL", &lock("k")]).await;
    }
    waiting.await.unwrap().unwrap();
}
