//! A Cluster whose slots move and whose nodes die.

use std::time::Duration;

use leasehold_redis_single::{
    Admin, ErrorKind, LockGuard, LockKey, LockOptions, LockerExt, LossReason, RedisSingle, ReleaseOutcome, Result,
};
use leasehold_testkit::redis::Cluster;
use leasehold_testkit::{eventually, needs, test};
use tokio::time::timeout;

const MINUTE: Duration = Duration::from_secs(60);

/// A key of each node, in their order.
async fn keys_of_all_nodes(cluster: &Cluster) -> Result<[LockKey; 3]> {
    let mut found = [None, None, None];
    for number in 0..100 {
        let key = format!("k{number}");
        let home = cluster.home(&format!("{{leasehold:{key}}}:lock")).await;
        found[home].get_or_insert(LockKey::new(key)?);
    }
    Ok(found.map(|key| key.expect("a hundred keys are spread")))
}

#[test]
async fn held_locks_outlive_the_move_of_a_slot_though_that_takes_longer_than_their_leases() -> Result<()> {
    let cluster = needs("redis-server", Cluster::start().await);
    let (locks, others) = (RedisSingle::connect(&cluster.url()).await?, RedisSingle::connect(&cluster.url()).await?);
    let options = LockOptions::new().ttl(Duration::from_secs(2));
    let key = LockKey::new("moving")?;
    let guard = locks.acquire(&key, &options).await?.unwrap();
    let mut still = Vec::new();
    for number in 0..50 {
        still
            .push(locks.acquire(&LockKey::new(format!("k{number}"))?, &LockOptions::new().ttl(MINUTE)).await?.unwrap());
    }
    let moving = cluster.begin_to_move("{leasehold:moving}:lock").await;
    guard.renew().await?;
    for name in ["{leasehold:moving}:lock", "{leasehold:bqkg}:epoch"] {
        moving.take_along(name).await;
        // It is renewed where its entry is now. A new server does not know the script.
        moving.target.ask(&["SCRIPT", "FLUSH"]).await;
        guard.renew().await?;
        // Many at once do not take the way of each other.
        for _ in 0..10 {
            let all = still.iter().chain([&guard, &guard, &guard]).map(LockGuard::renew);
            futures::future::try_join_all(all).await?;
        }
        // As long as its three entries are not on one node, it cannot be taken.
        assert_eq!(others.try_lock(&key).await.unwrap_err().kind(), ErrorKind::Unavailable);
    }
    assert_eq!(others.inspect(&key).await?.holders.len(), 1);
    drop(still);
    // Two leases and more.
    let renewals = moving.target.calls("pexpire").await + 6;
    eventually("it is renewed", async || moving.target.calls("pexpire").await >= renewals).await;
    assert!(guard.is_held());
    let elsewhere = locks.lock("elsewhere").await?;
    moving.end().await;
    guard.renew().await?;
    assert!(others.try_lock(&key).await?.is_none());
    assert_eq!(guard.release().await?, ReleaseOutcome::Released);
    assert!(elsewhere.is_held());
    assert!(others.lock_for(&key, MINUTE).await.is_ok());
    Ok(())
}

#[test]
async fn a_node_that_hangs_or_died_costs_its_own_keys_only() -> Result<()> {
    let mut cluster = needs("redis-server", Cluster::start().await);
    for node in cluster.nodes() {
        node.ask(&["CONFIG", "SET", "cluster-require-full-coverage", "no"]).await;
    }
    let (locks, others) = (RedisSingle::connect(&cluster.url()).await?, RedisSingle::connect(&cluster.url()).await?);
    let options = LockOptions::new().ttl(Duration::from_secs(2));
    let [down, up, too] = keys_of_all_nodes(&cluster).await?;
    cluster.nodes()[0].pause();
    let error = timeout(MINUTE, locks.try_lock(&down)).await.expect("an end").unwrap_err();
    assert!(error.is_transient(), "{error}");
    assert!(locks.try_lock(&up).await?.is_some());
    cluster.nodes()[0].resume();
    eventually("all keys work", async || locks.try_lock(&down).await.is_ok_and(|guard| guard.is_some())).await;

    let lost = locks.acquire(&down, &options).await?.unwrap();
    let held = [locks.acquire(&up, &options).await?.unwrap(), locks.acquire(&too, &options).await?.unwrap()];
    // So that the connection for signals is there too.
    let waiting = tokio::spawn({
        let (others, up) = (others.clone(), up.clone());
        async move { others.lock(&up).await }
    });
    cluster.nodes_mut()[0].kill();
    assert_eq!(timeout(MINUTE, lost.lost()).await.expect("it is lost at its deadline"), LossReason::Unreachable);
    // Several leases, and beyond the moment at which the others agree that it is dead.
    for node in &cluster.nodes()[1..] {
        let failed = async || node.ask(&["CLUSTER", "INFO"]).await.text().contains("cluster_slots_fail:5461");
        eventually("it counts as dead", failed).await;
        let renewals = node.calls("pexpire").await + 6;
        eventually("renewals go on", async || node.calls("pexpire").await >= renewals).await;
    }
    assert!(held.iter().all(LockGuard::is_held), "{held:?}");
    assert!(others.try_lock(&too).await?.is_none());
    assert!(others.try_lock(&down).await.unwrap_err().is_transient());
    // Whoever comes new, and is given the dead node first.
    let late = RedisSingle::connect(&cluster.url()).await?;
    assert!(late.try_lock(&too).await?.is_none());
    let [held, other] = held;
    assert_eq!(held.release().await?, ReleaseOutcome::Released);
    let next = timeout(MINUTE, waiting).await.expect("the waiter is served").expect("no panic")?;
    assert_eq!(next.release().await?, ReleaseOutcome::Released);
    assert_eq!(other.release().await?, ReleaseOutcome::Released);
    for _ in 0..20 {
        assert_eq!(late.lock(&too).await?.release().await?, ReleaseOutcome::Released);
    }
    cluster.nodes_mut()[0].restart().await;
    Ok(())
}
