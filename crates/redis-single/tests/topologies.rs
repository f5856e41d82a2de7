//! Beside a single server: a Cluster, and a primary behind Sentinels. The tests start them; without `redis-server`
//! they say so and do nothing.

use std::collections::BTreeSet;
use std::time::Duration;

use leasehold_redis::testing::{Cluster, Sentinels, Server, eventually};
use leasehold_redis_single::{
    Admin, ErrorKind, LockGuard, LockKey, LockOptions, Locker, LockerExt, LossReason, RedisSingle, ReleaseOutcome,
    Result,
};
use tokio::time::timeout;

const MINUTE: Duration = Duration::from_secs(60);

#[tokio::test]
async fn locks_are_spread_over_a_cluster_and_all_works_as_on_one_server() -> Result<()> {
    let Some(cluster) = Cluster::start().await else { return Ok(()) };
    let (here, there) = (RedisSingle::connect(&cluster.url()).await?, RedisSingle::connect(&cluster.url()).await?);
    let options = LockOptions::new().ttl(Duration::from_secs(2));
    let mut guards: Vec<LockGuard> = Vec::new();
    for number in 0..200 {
        let key = LockKey::new(format!("k{{{number}}}"))?;
        guards.push(here.acquire(&key, &options).await?.unwrap());
        assert!(there.try_lock(&key).await?.is_none());
    }
    for node in cluster.nodes() {
        assert!(node.ask(&["DBSIZE"]).await.number() > 50, "the keys are spread");
    }
    let (mut listed, mut after) = (BTreeSet::new(), None);
    loop {
        let page = there.list("k{", after.as_ref()).await?;
        listed.extend(page.keys.into_iter().map(|holders| holders.key));
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    assert_eq!(listed, guards.iter().map(|guard| guard.key().clone()).collect());
    for node in cluster.nodes() {
        let renewals = node.calls("pexpire").await + 150;
        eventually("renewals go on", async || node.calls("pexpire").await >= renewals).await;
    }
    assert!(guards.iter().all(LockGuard::is_held));
    there.force_release(guards[0].key()).await?;
    assert_eq!(guards[0].lost().await, LossReason::ForceReleased);
    for guard in guards.drain(1..) {
        assert_eq!(guard.release().await?, ReleaseOutcome::Released);
    }
    Ok(())
}

/// The line in the README, and what it adds.
async fn restrict(server: &Server, more: &[&str]) {
    let least = "-@all +eval +evalsha +get +set +del +pexpire +pttl +time +ping +type +info +scan +publish +subscribe \
                 +unsubscribe +hget +hmget +hset +hdel +hlen +hincrby +pubsub|numsub";
    let rules: Vec<&str> = least.split_whitespace().chain(more.iter().copied()).collect();
    let user = ["ACL", "SETUSER", "app", "on", ">secret", "~{leasehold:*", "&{leasehold:*"];
    assert_eq!(server.ask(&[&user[..], &rules].concat()).await.text(), "OK");
}

async fn all_works(url: &str) -> Result<()> {
    let url = url.replacen("://", "://app:secret@", 1);
    let (here, there) = (RedisSingle::connect(&url).await?, RedisSingle::connect(&url).await?);
    let guard = here.lock("k").await?;
    guard.renew().await?;
    assert_eq!(there.list("", None).await?.keys.len(), 1);
    let waiting = tokio::spawn(async move { there.lock("k").await });
    let _ = guard.release().await?;
    let guard = waiting.await.expect("no panic")?;
    here.force_release(guard.key()).await?;
    Ok(())
}

#[tokio::test]
async fn the_least_privileges_are_enough_everywhere() -> Result<()> {
    let Some(cluster) = Cluster::start().await else { return Ok(()) };
    for node in cluster.nodes() {
        restrict(node, &["+cluster|slots", "+cluster|info"]).await;
    }
    // The first page of a list may be that of another node.
    let url = cluster.url().replacen("://", "://app:secret@", 1);
    let locks = RedisSingle::connect(&url).await?;
    let guard = locks.lock("k").await?;
    guard.renew().await?;
    let mut page = locks.list("", None).await?;
    while page.keys.is_empty() {
        page = locks.list("", page.next.as_ref()).await?;
    }
    assert_eq!(guard.release().await?, ReleaseOutcome::Released);

    let Some(set) = Sentinels::start().await else { return Ok(()) };
    restrict(&set.primary, &["+role"]).await;
    all_works(&set.url()).await?;
    restrict(&set.primary, &["+select"]).await;
    all_works(&format!("{}/1", set.primary.url())).await
}

#[tokio::test]
async fn a_signal_crosses_the_cluster() -> Result<()> {
    let Some(cluster) = Cluster::start().await else { return Ok(()) };
    let here = RedisSingle::connect(&cluster.url()).await?;
    // Each locker subscribes on a node of its own choice.
    for number in 0..6 {
        let there = RedisSingle::connect(&cluster.url()).await?;
        let key = LockKey::new(format!("k{number}"))?;
        let guard = here.lock(&key).await?;
        let waiting = tokio::spawn(async move { there.lock(&key).await });
        eventually("it listens", async || {
            let mut channels = 0;
            for node in cluster.nodes() {
                let answer = node.ask(&["PUBSUB", "CHANNELS"]).await;
                channels += i32::from(answer != leasehold_redis::testing::Answer::List(Vec::new()));
            }
            channels == 1
        })
        .await;
        let _ = guard.release().await?;
        let _ = waiting.await.unwrap()?.release().await?;
    }
    Ok(())
}

#[tokio::test]
async fn a_slot_that_moves_to_another_node_takes_its_locks_along() -> Result<()> {
    let Some(cluster) = Cluster::start().await else { return Ok(()) };
    let (locks, others) = (RedisSingle::connect(&cluster.url()).await?, RedisSingle::connect(&cluster.url()).await?);
    let options = LockOptions::new().ttl(Duration::from_secs(10));
    let key = LockKey::new("moving")?;
    let guard = locks.acquire(&key, &options).await?.unwrap();
    let name = "{leasehold:moving}:lock";
    let slot = cluster.nodes()[0].ask(&["CLUSTER", "KEYSLOT", name]).await.number().to_string();
    let mut ids = Vec::new();
    for node in cluster.nodes() {
        ids.push(node.ask(&["CLUSTER", "MYID"]).await.text().to_owned());
    }
    let mut owner = None;
    for (index, node) in cluster.nodes().iter().enumerate() {
        if node.ask(&["CLUSTER", "COUNTKEYSINSLOT", &slot]).await.number() > 0 {
            owner = Some(index);
        }
    }
    let from = owner.unwrap();
    let to = (from + 1) % 3;
    let (source, target) = (&cluster.nodes()[from], &cluster.nodes()[to]);
    assert_eq!(target.ask(&["CLUSTER", "SETSLOT", &slot, "IMPORTING", &ids[from]]).await.text(), "OK");
    assert_eq!(source.ask(&["CLUSTER", "SETSLOT", &slot, "MIGRATING", &ids[to]]).await.text(), "OK");
    guard.renew().await?;
    let port = target.port().to_string();
    for part in ["lock", "fence"] {
        let name = format!("{{leasehold:moving}}:{part}");
        assert_eq!(source.ask(&["MIGRATE", "127.0.0.1", &port, &name, "0", "5000"]).await.text(), "OK");
    }
    // Half-way: the source does not have it any more, the target does not serve it yet.
    assert_eq!(guard.renew().await.unwrap_err().kind(), ErrorKind::Unavailable);
    assert_eq!(others.try_lock(&key).await.unwrap_err().kind(), ErrorKind::Unavailable);
    let elsewhere = locks.lock("elsewhere").await?;
    for node in cluster.nodes() {
        assert_eq!(node.ask(&["CLUSTER", "SETSLOT", &slot, "NODE", &ids[to]]).await.text(), "OK");
    }
    // Moved for good: the first command is sent on.
    guard.renew().await?;
    assert_eq!(guard.release().await?, ReleaseOutcome::Released);
    assert!(elsewhere.is_held());
    assert!(locks.try_lock(&key).await?.is_some());
    Ok(())
}

#[tokio::test]
async fn a_node_that_is_down_costs_its_own_keys_only() -> Result<()> {
    let Some(cluster) = Cluster::start().await else { return Ok(()) };
    for node in cluster.nodes() {
        node.ask(&["CONFIG", "SET", "cluster-require-full-coverage", "no"]).await;
    }
    let locks = RedisSingle::connect(&cluster.url()).await?;
    let stopped = &cluster.nodes()[1];
    let (mut down, mut up) = (None, None);
    for number in 0..100 {
        let name = format!("{{leasehold:k{number}}}:lock");
        let slot = stopped.ask(&["CLUSTER", "KEYSLOT", &name]).await.number();
        let place = if (5461..=10922).contains(&slot) { &mut down } else { &mut up };
        place.get_or_insert(LockKey::new(format!("k{number}"))?);
    }
    let (down, up) = (down.unwrap(), up.unwrap());
    stopped.pause();
    let error = timeout(MINUTE, locks.try_lock(&down)).await.expect("an end").unwrap_err();
    assert!(error.is_transient(), "{error}");
    eventually("the other keys work", async || locks.try_lock(&up).await.is_ok_and(|guard| guard.is_some())).await;
    stopped.resume();
    eventually("all keys work", async || locks.try_lock(&down).await.is_ok_and(|guard| guard.is_some())).await;
    Ok(())
}

#[tokio::test]
async fn after_a_fail_over_the_new_primary_is_found_and_no_token_repeats() -> Result<()> {
    let Some(mut set) = Sentinels::start().await else { return Ok(()) };
    let locks = RedisSingle::connect(&set.url()).await?;
    let key = LockKey::new("k")?;
    let options = LockOptions::new().ttl(Duration::from_secs(60));
    let held = locks.acquire(&key, &options).await?.unwrap();
    let before = locks.lock("other").await?;
    let token = before.fencing_token();
    let _ = before.release().await?;
    assert_eq!(set.primary.ask(&["WAIT", "1", "10000"]).await.number(), 1);
    set.primary.kill();
    let after = timeout(MINUTE, locks.lock("other")).await.expect("the new primary is found")?;
    assert!(after.fencing_token() > token);
    assert_eq!(set.replica.ask(&["EXISTS", "{leasehold:other}:lock"]).await.number(), 1);
    // What was replicated is held on.
    held.renew().await?;
    assert_eq!(held.release().await?, ReleaseOutcome::Released);
    Ok(())
}

#[tokio::test]
async fn a_primary_that_hangs_is_left_for_its_successor() -> Result<()> {
    let Some(set) = Sentinels::start().await else { return Ok(()) };
    let locks = RedisSingle::connect(&set.url()).await?;
    let _ = locks.lock("k").await?.release().await?;
    set.primary.pause();
    let after = timeout(MINUTE, locks.lock("k")).await.expect("the new primary is found")?;
    assert_eq!(set.replica.ask(&["EXISTS", "{leasehold:k}:lock"]).await.number(), 1);
    assert_eq!(after.release().await?, ReleaseOutcome::Released);
    set.primary.resume();
    Ok(())
}

#[tokio::test]
async fn a_grant_that_too_few_replicas_confirm_is_given_back() -> Result<()> {
    let Some(set) = Sentinels::start().await else { return Ok(()) };
    let with = |replicas| {
        let builder = RedisSingle::builder().url(set.primary.url());
        builder.confirm_replicas(replicas, Duration::from_millis(500)).connect()
    };
    let (one, two) = (with(1).await?, with(2).await?);
    assert_eq!(one.lock("k").await?.release().await?, ReleaseOutcome::Released);
    let error = two.try_lock("k").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(error.to_string().contains("1 of 2 replicas"), "{error}");
    assert!(one.try_lock("k").await?.is_some(), "the grant was given back");
    set.replica.pause();
    let error = one.try_lock("other").await.unwrap_err();
    assert!(error.to_string().contains("0 of 1 replicas"), "{error}");
    set.replica.resume();
    assert!(one.lock_for("other", MINUTE).await.is_ok());
    Ok(())
}
