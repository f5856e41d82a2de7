//! Beside a single server: a Cluster, and a primary behind Sentinels. The tests start them; without `redis-server`
//! they are ignored.

use std::time::Duration;

use leasehold_redis_single::{Admin, ErrorKind, LockKey, LockOptions, LockerExt, RedisSingle, ReleaseOutcome, Result};
use leasehold_testkit::redis::{Cluster, Sentinels, Server};
use leasehold_testkit::{needs, test};
use tokio::time::timeout;

const MINUTE: Duration = Duration::from_secs(60);

/// The line in the README, and what it adds.
async fn restrict(server: &Server, more: &[&str]) {
    let least = "-@all +eval +evalsha +get +mget +mset +exists +set +del +pexpire +pttl +time +ping +type +info +scan +publish +subscribe \
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

#[test]
async fn the_least_privileges_are_enough_everywhere() -> Result<()> {
    let cluster = needs("redis-server", Cluster::start().await);
    for node in cluster.nodes() {
        restrict(node, &["+cluster|slots", "+cluster|info", "+cluster|nodes", "+asking"]).await;
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

    let set = needs("redis-server", Sentinels::start().await);
    restrict(&set.primary, &["+role"]).await;
    all_works(&set.url()).await?;
    restrict(&set.primary, &["+select"]).await;
    all_works(&format!("{}/1", set.primary.url())).await
}

#[test]
async fn after_a_fail_over_the_new_primary_is_found_and_no_token_repeats() -> Result<()> {
    let mut set = needs("redis-server", Sentinels::start().await);
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

#[test]
async fn a_primary_that_hangs_is_left_for_its_successor() -> Result<()> {
    let set = needs("redis-server", Sentinels::start().await);
    let locks = RedisSingle::connect(&set.url()).await?;
    let _ = locks.lock("k").await?.release().await?;
    set.primary.pause();
    let after = timeout(MINUTE, locks.lock("k")).await.expect("the new primary is found")?;
    assert_eq!(set.replica.ask(&["EXISTS", "{leasehold:k}:lock"]).await.number(), 1);
    assert_eq!(after.release().await?, ReleaseOutcome::Released);
    set.primary.resume();
    Ok(())
}

#[test]
async fn a_grant_that_too_few_replicas_confirm_is_given_back() -> Result<()> {
    let set = needs("redis-server", Sentinels::start().await);
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
