//! Beside a single server: a Cluster, and a primary behind Sentinels.

use std::time::Duration;

use leasehold_redis_single::{
    Admin, ErrorKind, LockKey, LockOptions, LockerExt, LossReason, RedisSingle, ReleaseOutcome, Result,
};
use leasehold_testkit::redis::{Cluster, LeastUser, Sentinels, Server};
use leasehold_testkit::{needs, test};
use tokio::time::timeout;

const MINUTE: Duration = Duration::from_secs(60);

/// The line in the README, and what it adds.
async fn restrict(server: &Server, more: &[&str]) {
    LeastUser::of(include_str!("../../README.md")).make(server, &[]).await;
    assert_eq!(server.ask(&[&["ACL", "SETUSER", "app"][..], more].concat()).await.text(), "OK");
}

async fn all_works(url: &str) -> Result<()> {
    let url = url.replacen("://", "://app:pw@", 1);
    let (here, there) = (RedisSingle::connect(&url).await?, RedisSingle::connect(&url).await?);
    let guard = here.lock("k").await?;
    guard.renew().await?;
    // The first page may be that of another node.
    let mut page = there.list("", None).await?;
    while page.keys.is_empty() {
        page = there.list("", page.next.as_ref()).await?;
    }
    let waiting = tokio::spawn(async move { there.lock("k").await });
    let _ = guard.release().await?;
    let guard = waiting.await.expect("no panic")?;
    here.force_release(guard.key()).await.map(drop)
}

#[test]
async fn the_least_privileges_are_enough_everywhere() -> Result<()> {
    let cluster = needs("redis-server", Cluster::start().await);
    for node in cluster.nodes() {
        restrict(node, &["+cluster|slots", "+cluster|info", "+cluster|nodes", "+asking"]).await;
    }
    all_works(&cluster.url()).await?;
    let set = needs("redis-server", Sentinels::start().await);
    restrict(&set.primary, &["+role"]).await;
    all_works(&set.url()).await?;
    restrict(&set.primary, &["+select"]).await;
    all_works(&format!("{}/1", set.primary.url())).await
}

#[test]
async fn the_successor_of_a_primary_that_died_or_hangs_is_found_and_no_token_repeats() -> Result<()> {
    for hangs in [false, true] {
        let mut set = needs("redis-server", Sentinels::start().await);
        let locks = RedisSingle::connect(&set.url()).await?;
        let held = locks.acquire(&LockKey::new("k")?, &LockOptions::new().ttl(MINUTE)).await?.unwrap();
        let before = locks.lock("other").await?;
        let token = before.fencing_token();
        let _ = before.release().await?;
        assert_eq!(set.primary.ask(&["WAIT", "1", "10000"]).await.number(), 1);
        if hangs {
            set.primary.pause();
        } else {
            set.primary.kill();
        }
        let after = timeout(MINUTE, locks.lock("other")).await.expect("the new primary is found")?;
        assert!(after.fencing_token() > token);
        assert_eq!(set.replicas[0].ask(&["EXISTS", "{leasehold:other}:lock"]).await.number(), 1);
        // What was replicated is held on.
        held.renew().await?;
        assert_eq!(held.release().await?, ReleaseOutcome::Released);
    }
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
    set.replicas[0].pause();
    let error = one.try_lock("other").await.unwrap_err();
    assert!(error.to_string().contains("0 of 1 replicas"), "{error}");
    set.replicas[0].resume();
    assert!(one.lock_for("other", MINUTE).await.is_ok());
    Ok(())
}

#[test(deep)]
async fn nobody_holds_beside_a_holder_who_is_cut_off_together_with_the_primary() -> Result<()> {
    let wants = ["--min-replicas-to-write", "1", "--min-replicas-max-lag", "2"];
    let set = needs("redis-server", Sentinels::start_that_can_be_cut_off(&wants).await);
    // As the README advises.
    let safe = |url| RedisSingle::builder().url(url).confirm_replicas(1, Duration::from_millis(300)).connect();
    let (inside, outside) = (safe(set.primary.url()).await?, safe(set.url()).await?);
    let options = LockOptions::new().ttl(Duration::from_secs(6));
    let held = inside.acquire(&LockKey::new("held")?, &options).await?.unwrap();
    set.cut_off();
    // The holder hears nothing of it, and the others get the key only when its lease is over.
    let next = timeout(MINUTE, outside.lock("held")).await.expect("the lease ends")?;
    assert_eq!((held.is_held(), held.loss()), (false, Some(LossReason::Unreachable)));
    assert!(set.primary.ask(&["INFO", "replication"]).await.text().contains("role:master"), "the old one goes on");
    assert!(inside.try_lock("other").await.unwrap_err().is_transient(), "and grants what nobody else hears of");
    next.renew().await
}
