//! A primary whose place another takes, behind Sentinels. The tests start the servers; without `redis-server` they say
//! so and do nothing.

use std::time::Duration;

use leasehold_redis::testing::{Layout, Sentinels, Server, eventually};
use leasehold_redis_single::{ErrorKind, LockKey, LockOptions, Locker, LockerExt, RedisSingle, ReleaseOutcome, Result};
use tokio::time::timeout;

const MINUTE: Duration = Duration::from_secs(60);

/// What a Sentinel sends to an old primary, so that it never learns that it is one.
const STAYS_PRIMARY: [&str; 3] = ["--rename-command", "SLAVEOF", "nobody-knows-this"];
const WANTS_A_REPLICA: [&str; 4] = ["--min-replicas-to-write", "1", "--min-replicas-max-lag", "2"];

async fn is_primary(server: &Server) -> bool {
    server.ask(&["INFO", "replication"]).await.text().contains("role:master")
}

async fn has(server: &Server, key: &str) -> bool {
    server.ask(&["EXISTS", &format!("{{leasehold:{key}}}:lock")]).await.number() == 1
}

#[tokio::test]
async fn connected_clients_follow_a_planned_fail_over_though_the_old_primary_goes_on() -> Result<()> {
    let layout = Layout { primary: &STAYS_PRIMARY, ..Layout::default() };
    let Some(set) = Sentinels::start_as(layout).await else { return Ok(()) };
    let (locks, waiting) = (RedisSingle::connect(&set.url()).await?, RedisSingle::connect(&set.url()).await?);
    let options = LockOptions::new().ttl(Duration::from_secs(3));
    let held = locks.acquire(&LockKey::new("held")?, &options).await?.unwrap();
    let waiter = tokio::spawn(async move { waiting.lock("held").await });
    eventually("it waits", async || set.primary.ask(&["EXISTS", "{leasehold:held}:line"]).await.number() == 1).await;
    assert_eq!(set.primary.ask(&["WAIT", "1", "10000"]).await.number(), 1);
    set.fail_over().await;
    eventually("the replica is promoted", async || is_primary(&set.replica).await).await;
    eventually("the client goes to the new primary", async || {
        let Ok(guard) = locks.lock("k").await else { return false };
        let there = has(&set.replica, "k").await;
        guard.release().await.is_ok() && there
    })
    .await;
    assert!(is_primary(&set.primary).await, "the old one goes on");
    held.renew().await?;
    assert_eq!(held.release().await?, ReleaseOutcome::Released);
    let next = timeout(MINUTE, waiter).await.expect("the waiter is served").expect("no panic")?;
    assert!(has(&set.replica, "held").await);
    next.renew().await
}

#[tokio::test]
async fn a_primary_that_refuses_to_write_without_replicas_is_left_for_its_successor() -> Result<()> {
    let primary = [&STAYS_PRIMARY[..], &WANTS_A_REPLICA].concat();
    let Some(set) = Sentinels::start_as(Layout { primary: &primary, ..Layout::default() }).await else { return Ok(()) };
    let locks = RedisSingle::connect(&set.url()).await?;
    set.replica.pause();
    let refused = async || locks.try_lock("k").await.is_err_and(|error| error.kind() == ErrorKind::Unavailable);
    eventually("it refuses", refused).await;
    set.replica.resume();
    eventually("it writes again", async || locks.try_lock("k").await.is_ok()).await;
    set.fail_over().await;
    let there = async || locks.lock("other").await.is_ok() && has(&set.replica, "other").await;
    // It takes a second or two; by itself the driver stays for half a minute.
    let goes = eventually("the client goes to the new primary", there);
    timeout(Duration::from_secs(15), goes).await.expect("it does not wait for the old one to end");
    assert!(is_primary(&set.primary).await);
    Ok(())
}
