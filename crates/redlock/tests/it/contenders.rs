use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures::future::join_all;
use leasehold_redlock::Redlock;
use leasehold_redlock::core::Clock;
use leasehold_testkit::redis::Server;
use leasehold_testkit::{eventually, needs, test};
use tokio::task::JoinSet;
use tokio::time::sleep;

use crate::bench::{Nodes, acquire, cycle_many, deployment, lock, once, take};

#[test]
async fn a_split_vote_is_given_back_at_once() {
    let (nodes, locks) = deployment(5).await;
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

/// How often contenders on one key have it within a while, each for 2 ms, and how many of them had it.
async fn grants(contenders: &[Redlock], within: Duration) -> usize {
    let clock = Clock::system();
    let end = clock.now().plus(within);
    let inside = Arc::new(AtomicUsize::new(0));
    let mut cycling = JoinSet::new();
    for locks in contenders {
        let (locks, clock, inside) = (locks.clone(), clock.clone(), Arc::clone(&inside));
        cycling.spawn(async move {
            let mut granted = 0;
            while clock.now() < end {
                let guard = take(&locks, "k").await;
                assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0, "two holders");
                sleep(Duration::from_millis(2)).await;
                inside.fetch_sub(1, Ordering::SeqCst);
                guard.release().await.unwrap();
                granted += 1;
            }
            granted
        });
    }
    cycling.join_all().await.iter().sum()
}

#[test(multi_thread)]
async fn contenders_do_not_wait_for_silent_nodes() {
    let nodes = needs("redis-server", Nodes::start(5).await);
    let contenders = join_all((0..4).map(|_| nodes.redlock())).await;
    let within = Duration::from_secs(4);
    let all_up = grants(&contenders, within).await;
    nodes.0[0].pause();
    let one_silent = grants(&contenders, within).await;
    nodes.0[1].pause();
    let two_silent = grants(&contenders, within).await;
    nodes.0[..2].iter().for_each(Server::resume);
    println!("grants in {within:?}: {all_up} with all up, {one_silent} with one silent, {two_silent} with two");
    assert!(one_silent * 4 >= all_up, "{one_silent} grants with one silent, {all_up} with all up");
    assert!(two_silent * 8 >= all_up, "{two_silent} grants with two silent, {all_up} with all up");
    // What the silent ones granted meanwhile goes back.
    eventually("all nodes are free", async || nodes.having("k").await == 0).await;
}

#[test(multi_thread)]
async fn a_released_lock_is_free_where_anybody_answers_however_many_wait_for_a_silent_node() {
    let nodes = needs("redis-server", Nodes::start(5).await);
    // So that all of them wait for it at the same time.
    let locks = nodes.builder().node_limit(Duration::from_secs(10)).connect().await.unwrap();
    nodes.0[0].pause();
    cycle_many(&locks, 100, |task, number| format!("{task}/{number}")).await;
    for node in &nodes.0[1..] {
        let count = ["EVAL", "return #redis.call('KEYS', '{leasehold:*}:lock')", "0"];
        eventually("no lock is left", async || node.ask(&count).await.number() == 0).await;
    }
    nodes.0[0].resume();
}
