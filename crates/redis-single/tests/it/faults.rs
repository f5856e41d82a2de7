//! What is sent, and how often. The tests start them; without `redis-server` they are ignored.

use std::time::Duration;

use leasehold_redis_single::{LockKey, LockOptions, LockerExt, RedisSingle, ReleaseOutcome, Result};
use leasehold_testkit::redis::Server;
use leasehold_testkit::{eventually, needs, test};

#[test]
async fn forgotten_scripts_are_sent_again() -> Result<()> {
    let server = needs("redis-server", Server::start(&[]).await);
    let locks = RedisSingle::connect(&server.url()).await?;
    let guard = locks.lock("k").await?;
    server.ask(&["SCRIPT", "FLUSH"]).await;
    guard.renew().await?;
    server.ask(&["SCRIPT", "FLUSH"]).await;
    assert_eq!(guard.release().await?, ReleaseOutcome::Released);
    Ok(())
}

#[test]
async fn nothing_is_sent_for_a_guard_after_its_release() -> Result<()> {
    let server = needs("redis-server", Server::start(&[]).await);
    let locks = RedisSingle::connect(&server.url()).await?;
    let ttl = Duration::from_millis(300);
    let guard = locks.acquire(&LockKey::new("k")?, &LockOptions::new().ttl(ttl)).await?.unwrap();
    eventually("it is renewed", async || server.calls("pexpire").await >= 2).await;
    let _ = guard.release().await?;
    let before = server.calls("evalsha").await;
    tokio::time::sleep(3 * ttl).await;
    assert_eq!(server.calls("evalsha").await, before);
    Ok(())
}

#[test]
async fn many_guards_are_renewed_by_few_commands() -> Result<()> {
    let server = needs("redis-server", Server::start(&[]).await);
    let locks = RedisSingle::connect(&server.url()).await?;
    let options = LockOptions::new().ttl(Duration::from_secs(6));
    let mut guards = Vec::new();
    for number in 0..400 {
        guards.push(locks.acquire(&LockKey::new(format!("k{number}"))?, &options).await?.unwrap());
    }
    let before = server.calls("evalsha").await;
    eventually("all are renewed", async || server.calls("pexpire").await >= 400).await;
    let commands = server.calls("evalsha").await - before;
    let renewals = server.calls("pexpire").await;
    assert!(commands < renewals / 4, "{commands} commands for {renewals} renewals");
    assert!(guards.iter().all(leasehold_redis_single::LockGuard::is_held));
    Ok(())
}
