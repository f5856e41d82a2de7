//! Beyond one server. The tests start what they need; without `redis-server` they are ignored.

use std::time::Duration;

use leasehold_redis_reentrant::{
    Admin, LockKey, LockOptions, LockerExt, LossReason, RedisReentrant, ReleaseOutcome, Result, Wait,
};
use leasehold_testkit::redis::{Cluster, Sentinels};
use leasehold_testkit::{eventually, needs, test};

fn patiently() -> LockOptions {
    LockOptions::new().wait(Wait::UpTo(Duration::from_secs(60)))
}

#[test]
async fn a_cluster_holds_the_levels_of_each_key_on_one_node() -> Result<()> {
    let cluster = needs("redis-server", Cluster::start().await);
    let locks = RedisReentrant::connect(&cluster.url()).await?;
    let (ours, theirs) = (locks.session(), locks.session());
    let mut guards = Vec::new();
    for number in 0..30 {
        let key = LockKey::new(format!("key {number}"))?;
        for _ in 0..2 {
            guards.push(ours.acquire(&key, &patiently().ttl(Duration::from_secs(3))).await?.unwrap());
        }
        assert!(theirs.try_lock(key.as_str()).await?.is_none());
    }
    for node in cluster.nodes() {
        assert!(node.ask(&["DBSIZE"]).await.number() > 0, "a node has no lock");
    }
    // Once for each level at most, and then a renewal for each third of more than a lease.
    let enough = 60 + 30 * 4;
    eventually("they are renewed", async || {
        let mut prolonged = 0;
        for node in cluster.nodes() {
            prolonged += node.calls("pexpire").await;
        }
        prolonged >= enough
    })
    .await;
    assert!(guards.iter().all(leasehold_redis_reentrant::LockGuard::is_held));
    let waiting = tokio::spawn(async move { theirs.acquire(&LockKey::new("key 7")?, &patiently()).await });
    for guard in guards {
        assert_eq!(guard.release().await?, ReleaseOutcome::Released);
    }
    assert!(waiting.await.unwrap()?.is_some());
    assert!(ours.list("", None).await?.keys.is_empty());
    Ok(())
}

/// Replication is asynchronous, so exclusion may break here; tokens must grow all the same, and a guard must not claim
/// what the new primary does not know.
#[test]
async fn after_a_fail_over_levels_are_renewed_or_lost_on_time_and_tokens_grow() -> Result<()> {
    let mut sentinels = needs("redis-server", Sentinels::start().await);
    let locks = RedisReentrant::connect(&sentinels.url()).await?;
    let (ours, theirs) = (locks.session(), locks.session());
    let key = LockKey::new("k")?;
    let options = patiently().ttl(Duration::from_secs(30));
    let (outer, inner) = (ours.acquire(&key, &options).await?.unwrap(), ours.acquire(&key, &options).await?.unwrap());
    let token = outer.fencing_token().unwrap();
    sentinels.primary.kill();
    let renewed = loop {
        match outer.renew().await {
            Ok(()) => break true,
            Err(error) if error.is_transient() => tokio::time::sleep(Duration::from_millis(20)).await,
            Err(_) => break false,
        }
    };
    assert_eq!((outer.is_held(), inner.is_held()), (renewed, renewed));
    if renewed {
        assert!(theirs.try_lock("k").await?.is_none());
        let again = ours.acquire(&key, &options).await?.unwrap();
        assert_eq!(again.fencing_token(), Some(token));
    }
    drop((outer, inner));
    let next = theirs.acquire(&key, &options).await?.unwrap();
    assert!(next.fencing_token().unwrap() > token);
    Ok(())
}

#[test]
async fn a_level_that_too_few_replicas_confirm_is_given_back() -> Result<()> {
    let set = needs("redis-server", Sentinels::start().await);
    let builder = RedisReentrant::builder().url(set.primary.url());
    let sessions = builder.confirm_replicas(1, Duration::from_millis(500)).connect().await?;
    let session = sessions.session();
    let outer = session.lock("k").await?;
    set.replica.pause();
    let error = session.try_lock("k").await.unwrap_err();
    assert!(error.to_string().contains("0 of 1 replicas"), "{error}");
    set.replica.resume();
    assert!(outer.is_held());
    assert_eq!(outer.release().await?, ReleaseOutcome::Released);
    assert!(sessions.session().lock_for("k", Duration::from_secs(60)).await.is_ok(), "no level is left");
    Ok(())
}

#[test]
async fn a_renewal_that_no_replica_has_does_not_count_for_any_level() -> Result<()> {
    let set = needs("redis-server", Sentinels::start().await);
    let builder = RedisReentrant::builder().url(set.primary.url());
    let sessions = builder.confirm_replicas(1, Duration::from_millis(300)).connect().await?;
    let (session, key) = (sessions.session(), LockKey::new("k")?);
    let options = patiently().ttl(Duration::from_secs(3));
    let levels = [session.acquire(&key, &options).await?.unwrap(), session.acquire(&key, &options).await?.unwrap()];
    eventually("they are renewed", async || set.primary.calls("pexpire").await >= 8).await;
    assert!(levels.iter().all(leasehold_redis_reentrant::LockGuard::is_held));
    set.replica.pause();
    for level in &levels {
        let lost = tokio::time::timeout(Duration::from_secs(60), level.lost()).await.expect("lost at the deadline");
        assert_eq!(lost, LossReason::Unreachable);
    }
    set.replica.resume();
    Ok(())
}
