//! Servers that forget, stop, restart and lose replies. The tests start them; without `redis-server` they are ignored.

use std::time::Duration;

use leasehold_redis_single::{
    Admin, ErrorKind, LockKey, LockOptions, Locker, LockerExt, LossReason, RedisSingle, ReleaseOutcome, Result, Wait,
};
use leasehold_testkit::redis::Server;
use leasehold_testkit::{Proxy, eventually, needs, test};
use tokio::time::timeout;

/// Longer than any test waits: what is free before was not freed by the lease.
const LONG: Duration = Duration::from_secs(3600);

fn options() -> LockOptions {
    LockOptions::new().ttl(LONG)
}

async fn is_free(locks: &RedisSingle, key: &LockKey) -> bool {
    locks.inspect(key).await.is_ok_and(|seen| seen.holders.is_empty())
}

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
async fn a_server_that_forgets_everything_tells_the_holder_and_gives_no_token_twice() -> Result<()> {
    let server = needs("redis-server", Server::start(&[]).await);
    let locks = RedisSingle::connect(&server.url()).await?;
    let options = LockOptions::new().ttl(Duration::from_secs(1));
    let guard = locks.acquire(&LockKey::new("k")?, &options).await?.unwrap();
    server.ask(&["FLUSHALL"]).await;
    assert_eq!(guard.lost().await, LossReason::Stolen);
    let next = locks.lock("k").await?;
    assert!(next.fencing_token() > guard.fencing_token());
    assert_eq!(guard.release().await?, ReleaseOutcome::AlreadyLost(LossReason::Stolen));
    assert!(!is_free(&locks, next.key()).await);
    Ok(())
}

#[test]
async fn a_restarted_server_is_found_again_and_gives_larger_tokens() -> Result<()> {
    let mut server = needs("redis-server", Server::start(&[]).await);
    let locks = RedisSingle::connect(&server.url()).await?;
    let options = LockOptions::new().ttl(Duration::from_secs(3));
    let guard = locks.acquire(&LockKey::new("k")?, &options).await?.unwrap();
    server.restart().await;
    // Waiting rides out that there is no connection.
    let next = locks.lock("k").await?;
    assert!(next.fencing_token() > guard.fencing_token());
    assert_eq!(guard.lost().await, LossReason::Stolen);
    Ok(())
}

#[test]
async fn a_server_that_is_away_is_an_error_and_not_a_busy_key() -> Result<()> {
    let mut server = needs("redis-server", Server::start(&[]).await);
    let locks = RedisSingle::connect(&server.url()).await?;
    server.kill();
    for wait in [Wait::Never, Wait::UpTo(Duration::from_millis(300))] {
        let error = locks.acquire(&LockKey::new("k")?, &options().wait(wait)).await.unwrap_err();
        assert!(error.is_transient(), "{error}");
    }
    Ok(())
}

#[test]
async fn a_server_that_stops_past_the_deadline_costs_the_guard_and_nothing_more() -> Result<()> {
    let server = needs("redis-server", Server::start(&[]).await);
    let locks = RedisSingle::connect(&server.url()).await?;
    let key = LockKey::new("k")?;
    let guard = locks.acquire(&key, &LockOptions::new().ttl(Duration::from_secs(2))).await?.unwrap();
    server.pause();
    let lost = timeout(Duration::from_secs(60), guard.lost()).await.expect("the loss is told while it is stopped");
    assert_eq!(lost, LossReason::Unreachable);
    assert!(!guard.is_held());
    server.resume();
    let next = timeout(Duration::from_secs(60), locks.acquire(&key, &options())).await.expect("an end")?.unwrap();
    assert!(next.fencing_token() > guard.fencing_token());
    assert_eq!(next.release().await?, ReleaseOutcome::Released);
    Ok(())
}

#[test]
async fn a_guard_survives_a_pause_that_is_shorter_than_its_lease() -> Result<()> {
    let server = needs("redis-server", Server::start(&[]).await);
    let locks = RedisSingle::connect(&server.url()).await?;
    let guard = locks.acquire(&LockKey::new("k")?, &LockOptions::new().ttl(Duration::from_secs(20))).await?.unwrap();
    server.pause();
    // Long enough for a command to fail.
    assert!(guard.renew().await.unwrap_err().is_transient());
    assert!(guard.is_held());
    server.resume();
    eventually("it is renewed", async || guard.renew().await.is_ok()).await;
    assert_eq!(guard.release().await?, ReleaseOutcome::Released);
    Ok(())
}

#[test]
async fn a_grant_whose_reply_is_lost_is_given_back() -> Result<()> {
    let server = needs("redis-server", Server::start(&[]).await);
    let proxy = Proxy::start(server.port());
    let (far, near) =
        (RedisSingle::connect(&proxy.url(&server.url())).await?, RedisSingle::connect(&server.url()).await?);
    let key = LockKey::new("k")?;
    far.lock("warm-up").await?.release().await.map(drop)?;
    for round in 1..=10 {
        proxy.drop_next_reply();
        let error = far.acquire(&key, &options().wait(Wait::Never)).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Indeterminate);
        assert_eq!(proxy.dropped_replies(), round);
        eventually("the key is free", async || is_free(&near, &key).await).await;
        // A reconnection may be under way.
        eventually("the connection is back", async || far.inspect(&key).await.is_ok()).await;
    }
    Ok(())
}

#[test]
async fn a_claim_that_is_carried_out_after_it_was_given_up_does_not_keep_the_key_for_its_lease() -> Result<()> {
    let server = needs("redis-server", Server::start(&[]).await);
    let proxy = Proxy::start(server.port());
    let far = RedisSingle::builder()
        .url(proxy.url(&server.url()))
        .command_timeout(Duration::from_millis(300))
        .connect()
        .await?;
    let (near, key) = (RedisSingle::connect(&server.url()).await?, LockKey::new("k")?);
    far.lock("warm-up").await?.release().await.map(drop)?;
    let settled = server.calls("hmget").await;
    proxy.hold_requests();
    let asked = tokio::spawn({
        let (far, key) = (far.clone(), key.clone());
        async move { far.acquire(&key, &options().wait(Wait::Never)).await }
    });
    eventually("it is on its way", async || proxy.held() == 1).await;
    proxy.cut();
    assert_eq!(asked.await.unwrap().unwrap_err().kind(), ErrorKind::Indeterminate);
    // Over a new connection.
    eventually("it is given up", async || server.calls("hmget").await > settled).await;
    let counter = "{leasehold:k}:fence";
    assert_eq!(server.ask(&["EXISTS", counter]).await.number(), 0, "it was carried out before");
    proxy.release();
    eventually("it is carried out", async || server.ask(&["EXISTS", counter]).await.number() == 1).await;
    eventually("the key is free", async || is_free(&near, &key).await).await;
    Ok(())
}

#[test]
async fn a_release_whose_reply_is_lost_is_settled_without_harm_to_the_next_holder() -> Result<()> {
    let server = needs("redis-server", Server::start(&[]).await);
    let proxy = Proxy::start(server.port());
    let (far, near) =
        (RedisSingle::connect(&proxy.url(&server.url())).await?, RedisSingle::connect(&server.url()).await?);
    let guard = far.lock("k").await?;
    proxy.drop_next_reply();
    assert_eq!(guard.release().await.unwrap_err().kind(), ErrorKind::Indeterminate);
    let next = near.lock("k").await?;
    eventually("the connection is back", async || far.inspect(next.key()).await.is_ok()).await;
    far.close().await;
    next.renew().await
}

#[test(multi_thread)]
async fn acquisitions_that_are_cancelled_at_any_moment_leave_nothing() -> Result<()> {
    let server = needs("redis-server", Server::start(&[]).await);
    let proxy = Proxy::start(server.port());
    let (far, near) =
        (RedisSingle::connect(&proxy.url(&server.url())).await?, RedisSingle::connect(&server.url()).await?);
    let key = LockKey::new("k")?;
    proxy.delay(Duration::from_millis(10));
    let mut granted = 0;
    for round in 0..200 {
        // From before the request has left to after the reply has come, some 20 ms later.
        let patience = Duration::from_micros(round * 131 % 26_000);
        if let Ok(guard) = timeout(patience, far.acquire(&key, &options())).await {
            drop(guard?);
            granted += 1;
        }
        if round % 10 == 0 {
            eventually("the key is free", async || is_free(&near, &key).await).await;
        }
    }
    eventually("the key is free", async || is_free(&near, &key).await).await;
    assert!(granted < 200, "none was cancelled in time");
    let none = leasehold_testkit::redis::Answer::List(Vec::new());
    eventually("no lock is left", async || server.ask(&["KEYS", "*:lock"]).await == none).await;
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

#[test]
async fn a_locker_that_is_dropped_lets_go_of_keys_and_connections() -> Result<()> {
    let server = needs("redis-server", Server::start(&[]).await);
    let locks = RedisSingle::connect(&server.url()).await?;
    let guard = locks.lock("k").await?;
    drop(locks);
    assert!(guard.is_held());
    guard.renew().await?;
    drop(guard);
    eventually("the key is free", async || server.ask(&["EXISTS", "{leasehold:k}:lock"]).await.number() == 0).await;
    eventually("nobody is connected", async || server.clients().await == 0).await;
    Ok(())
}

#[test]
async fn closing_releases_and_ends_all_connections() -> Result<()> {
    let server = needs("redis-server", Server::start(&[]).await);
    let (here, there) = (RedisSingle::connect(&server.url()).await?, RedisSingle::connect(&server.url()).await?);
    let guard = here.lock("k").await?;
    let waiting = tokio::spawn(async move {
        let guard = there.lock("k").await?;
        there.close().await;
        Ok::<_, leasehold_redis_single::Error>(guard.loss())
    });
    eventually("there are three connections", async || server.clients().await == 3).await;
    here.close().await;
    assert_eq!(guard.loss(), Some(LossReason::Shutdown));
    assert_eq!(waiting.await.unwrap()?, Some(LossReason::Shutdown));
    assert_eq!(here.try_lock("k").await.unwrap_err().kind(), ErrorKind::Closed);
    assert_eq!(here.inspect(guard.key()).await.unwrap_err().kind(), ErrorKind::Closed);
    eventually("nobody is connected", async || server.clients().await == 0).await;
    Ok(())
}

#[test]
async fn a_borrowed_client_is_used_and_left_alone() -> Result<()> {
    use leasehold_redis::fred::interfaces::ClientLike;
    use leasehold_redis::fred::types::Builder;
    use leasehold_redis::fred::types::config::Config;
    let server = needs("redis-server", Server::start(&[]).await);
    let config = Config::from_url(&server.url()).unwrap();
    let client = Builder::from_config(config).build().unwrap();
    client.init().await.unwrap();
    let locks = RedisSingle::from_client(client.clone());
    let other = RedisSingle::builder().client(client.clone()).namespace("other").connect().await?;
    let guard = locks.lock("k").await?;
    assert!(other.try_lock("k").await?.is_some());
    assert!(RedisSingle::connect(&server.url()).await?.try_lock("k").await?.is_none());
    let _ = guard.release().await?;
    locks.close().await;
    drop((locks, other));
    assert_eq!(client.ping::<String>(None).await.unwrap(), "PONG");
    client.quit().await.unwrap();
    Ok(())
}
