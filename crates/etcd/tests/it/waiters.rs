//! Callers of one process that have nothing to do with each other.

use std::time::Duration;

use futures::poll;
use leasehold_etcd::{Attempt, Backed, Backend, Claim, Clock, Etcd, LockerExt, Mode, Notification};
use leasehold_testkit::etcd::Cluster;
use leasehold_testkit::{PATIENCE, eventually, test};

use crate::clients::{behind_a_proxy, clients, count, key, take};

#[test(multi_thread, server)]
async fn a_caller_that_is_not_polled_while_it_connects_stalls_nobody() {
    let (_cluster, proxy, ours) = behind_a_proxy().await;
    proxy.refuse(true);
    proxy.cut();
    eventually("the connection is given up", async || ours.try_lock("k").await.is_err()).await;
    proxy.refuse(false);
    let mut stalled = Box::pin(ours.try_lock("stalled"));
    assert!(poll!(stalled.as_mut()).is_pending());
    // From here on it is kept, and polled no more.
    eventually("others are answered", async || ours.try_lock("k").await.is_ok()).await;
    drop(stalled);
}

#[test(multi_thread, server)]
async fn a_waiter_asks_nothing_when_others_wait_for_other_keys() {
    const OTHERS: u64 = 20;
    let cluster = Cluster::one(&[]).await;
    let port = cluster.ports()[0];
    let [ours, theirs] = clients(&cluster.url()).await;
    let (backend, long) = (ours.engine().backend(), Duration::from_secs(600));
    let mut claims = Vec::new();
    let mut held = Vec::new();
    for number in 0..=OTHERS {
        let name = format!("k{number}");
        held.push(take(&theirs, &name, long).await);
        claims.push(Claim { waits: true, ..Claim::new(&key(&name), Mode::Exclusive, long) });
    }
    let queued = async |claim| matches!(backend.try_acquire(claim).await.unwrap(), Attempt::Queued { .. });
    assert!(queued(&claims[0]).await);
    let mut subscription = backend.notifications().unwrap().subscribe(&claims[0].key).await.unwrap();
    let listener = tokio::spawn(async move { subscription.next().await });
    eventually("it watches", async || count(port, "\"Watch\"") > 0).await;

    let before = count(port, "\"Txn\"");
    for claim in &claims[1..] {
        assert!(queued(claim).await);
    }
    let asked = count(port, "\"Txn\"") - before;
    // Each reads its line and writes its entry.
    assert!(asked < 2 * OTHERS + OTHERS / 2, "{asked} transactions for {OTHERS} waiters");

    held.swap_remove(0).release().await.unwrap();
    let told = tokio::time::timeout(PATIENCE, listener).await.expect("nothing was told").unwrap();
    assert!(matches!(told, Notification::Granted { owner, .. } if owner == claims[0].owner), "{told:?}");
}

/// As clients of one agent do.
#[test(multi_thread, server)]
async fn each_of_several_waiters_of_one_backend_is_told_of_its_grant_in_turn() {
    let cluster = Cluster::one(&[]).await;
    let [ours, theirs] = clients(&cluster.url()).await;
    let (backend, long) = (ours.engine().backend(), Duration::from_secs(600));
    let held = take(&theirs, "k", long).await;
    let (mut claims, mut subscriptions) = (Vec::new(), Vec::new());
    for _ in 0..3 {
        let claim = Claim { waits: true, ..Claim::new(&key("k"), Mode::Exclusive, long) };
        assert!(matches!(backend.try_acquire(&claim).await.unwrap(), Attempt::Queued { .. }));
        subscriptions.push(backend.notifications().unwrap().subscribe(&claim.key).await.unwrap());
        claims.push(claim);
    }
    held.release().await.unwrap();
    for claim in &claims {
        for subscription in &mut subscriptions {
            let told = tokio::time::timeout(PATIENCE, subscription.next()).await.expect("nothing was told");
            assert!(matches!(told, Notification::Granted { owner, .. } if owner == claim.owner), "{told:?}");
        }
        backend.release(&claim.grant(None)).await.unwrap();
    }
}

#[test(multi_thread, server)]
async fn who_waits_behind_a_waiter_of_the_same_backend_is_told_when_that_gives_up() {
    let cluster = Cluster::one(&[]).await;
    let [ours, theirs] = clients(&cluster.url()).await;
    let (backend, long) = (ours.engine().backend(), Duration::from_secs(600));
    let reads = Claim::new(&key("k"), Mode::Shared, long);
    assert!(matches!(theirs.engine().backend().try_acquire(&reads).await.unwrap(), Attempt::Granted { .. }));
    let [writer, reader] =
        [Mode::Exclusive, Mode::Shared].map(|mode| Claim { waits: true, ..Claim::new(&key("k"), mode, long) });
    for claim in [&writer, &reader] {
        assert!(matches!(backend.try_acquire(claim).await.unwrap(), Attempt::Queued { .. }));
    }
    let mut subscription = backend.notifications().unwrap().subscribe(&reader.key).await.unwrap();
    let listener = tokio::spawn(async move { (subscription.next().await, subscription) });
    eventually("it watches", async || count(cluster.ports()[0], "\"Watch\"") > 0).await;
    backend.release(&writer.grant(None)).await.unwrap();
    let (told, mut subscription) = tokio::time::timeout(PATIENCE, listener).await.expect("nothing was told").unwrap();
    assert!(matches!(told, Notification::Granted { owner, .. } if owner == reader.owner), "{told:?}");

    // Of a grant it is told once.
    let listener = tokio::spawn(async move { subscription.next().await });
    backend.release(&reader.grant(None)).await.unwrap();
    let told = tokio::time::timeout(PATIENCE, listener).await.expect("nothing was told").unwrap();
    assert_eq!(told, Notification::Freed);
}

/// A place in the line that an earlier request of the same claim wrote so late that this request did not see it yet.
#[test(multi_thread, server)]
async fn a_place_that_came_late_has_the_lease_that_its_waiter_is_told() {
    const LEASE: Duration = Duration::from_secs(5);
    let (cluster, proxy, ours) = behind_a_proxy().await;
    let port = cluster.ports()[0];
    let theirs = Etcd::connect(&cluster.url()).await.unwrap();
    let held = take(&theirs, "k", Duration::from_secs(600)).await;
    let clock = Clock::system();
    proxy.delay(Duration::from_millis(120));
    let came_late = async || {
        let claim = Claim { waits: true, ..Claim::new(&key("k"), Mode::Exclusive, LEASE) };
        let granted = cluster.control(&["lease", "grant", "5"]).await.unwrap();
        let lease = granted.split(' ').nth(1).unwrap().to_owned();
        tokio::time::sleep(LEASE / 2).await;
        let (before, began) = (count(port, "\"Txn\""), clock.now());
        let backend = ours.engine().backend().clone();
        let asked = tokio::spawn({
            let claim = claim.clone();
            async move { backend.try_acquire(&claim).await }
        });
        eventually("it has read the line", async || count(port, "\"Txn\"") > before).await;
        let name = format!("leasehold/leasehold/held/k/w/{}", claim.owner.to_hex());
        let put = cluster.control(&["put", &name, "", "--lease", &lease]).await;
        let answer = asked.await.unwrap();
        let line = cluster.control(&["get", "leasehold/leasehold/held/k/w/", "--prefix", "--keys-only"]).await.unwrap();
        // Else it was too slow: the lease was over, or the request wrote its place before.
        let in_time = put.is_ok() && line.split_whitespace().count() == 2 && line.contains(&name);
        let is_queued = matches!(answer, Ok(Attempt::Queued { .. }));
        if in_time && is_queued {
            let left = cluster.control(&["lease", "timetolive", &lease]).await.unwrap();
            let left = left.split("remaining(").nth(1).and_then(|left| left.split('s').next()?.parse::<u64>().ok());
            // Told in whole seconds, rounded down.
            let told = left.map_or(Duration::ZERO, |left| Duration::from_secs(left + 1)) + clock.now().since(began);
            assert!(told >= LEASE, "its waiter is told of {LEASE:?}, and it lasts {told:?}");
        }
        ours.engine().backend().release(&claim.grant(None)).await.unwrap();
        cluster.control(&["del", &name]).await.unwrap();
        in_time && is_queued
    };
    eventually("the place came in time", came_late).await;
    held.release().await.unwrap();
}
