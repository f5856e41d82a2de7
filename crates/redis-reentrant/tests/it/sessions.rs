//! What a session promises, on real servers, which the tests start; without `redis-server` they are ignored.

use std::env;
use std::io::Read;
use std::process::Stdio;
use std::time::Duration;

use leasehold_redis::fred::prelude::{Builder, ClientLike, Config, ReconnectPolicy};
use leasehold_redis_reentrant::{
    Admin, Client, ErrorKind, LockGuard, LockKey, LockOptions, LockerExt, LossReason, RedisReentrant, ReleaseOutcome,
    Result, Session, Wait,
};
use leasehold_testkit::redis::Server;
use leasehold_testkit::{Proxy, eventually, needs, shows_nothing, test, this_program};
use tokio::process::{Child, Command};

const LOCK: &str = "{leasehold:k}:lock";
/// A lease that ends within a test, and is renewed in time also on a busy machine.
const SHORT: Duration = Duration::from_secs(2);

fn patiently() -> LockOptions {
    LockOptions::new().wait(Wait::UpTo(Duration::from_secs(60)))
}

async fn lock(session: &Session, options: &LockOptions) -> Result<LockGuard> {
    Ok(session.acquire(&LockKey::new("k")?, options).await?.expect("it is free or becomes so"))
}

async fn levels(session: &Session, options: &LockOptions, depth: usize) -> Result<Vec<LockGuard>> {
    let mut guards = Vec::new();
    for _ in 0..depth {
        guards.push(lock(session, options).await?);
    }
    Ok(guards)
}

/// How many levels the server counts.
async fn counted(server: &Server) -> i64 {
    (server.ask(&["HLEN", LOCK]).await.number() - 3).max(0)
}

#[test]
async fn sessions_share_one_connection_and_exclude_each_other() -> Result<()> {
    let server = needs("redis-server", Server::start(&[]).await);
    let locks = RedisReentrant::connect(&server.url()).await?;
    let (here, there) = (locks.session(), locks.session());
    let outer = here.lock("k").await?;
    let inner = here.try_lock("k").await?.expect("the session has it");
    assert_eq!((inner.fencing_token(), counted(&server).await), (outer.fencing_token(), 2));
    assert!(there.try_lock("k").await?.is_none());
    drop((outer, inner));
    let successor = there.lock("k").await?;
    assert!(here.try_lock("k").await?.is_none());
    assert_eq!(successor.release().await?, ReleaseOutcome::Released);
    // The second connection is that for the signals.
    assert!(server.clients().await <= 2);
    Ok(())
}

#[test]
async fn bad_ids_are_refused() -> Result<()> {
    let server = needs("redis-server", Server::start(&[]).await);
    let locks = RedisReentrant::connect(&server.url()).await?;
    for good in ["x".to_owned(), "x".repeat(255)] {
        assert_eq!(locks.session_with_id(good.clone())?.id(), good);
    }
    for bad in [String::new(), "x".repeat(256), "é".repeat(128)] {
        let error = locks.session_with_id(bad).unwrap_err();
        assert_eq!((error.kind(), error.backend()), (ErrorKind::InvalidOptions, Some("redis-reentrant")));
        assert!(error.to_string().contains("1 to 255"), "{error}");
    }
    let session = locks.session_with_id("one two\r\n\0 é{}")?;
    assert_eq!(session.id(), "one two\r\n\0 é{}");
    let _guard = session.lock("k").await?;
    assert!(locks.session_with_id("one two")?.try_lock("k").await?.is_none());
    assert!(locks.session_with_id(session.id())?.try_lock("k").await?.is_some());
    let secret = locks.session();
    assert_ne!(secret.id(), locks.session().id());
    assert!(!format!("{locks:?} {secret:?}").contains(secret.id()));
    Ok(())
}

#[test]
async fn sessions_that_are_gone_are_forgotten_and_the_others_are_not() {
    let locks = RedisReentrant::from_client(Client::default());
    let kept: Vec<_> = (0..100).map(|_| locks.session()).collect();
    for _ in 0..10_000 {
        locks.session();
    }
    let remembered = format!("{locks:?}").matches("WeakEngine").count();
    assert!((100..400).contains(&remembered), "{remembered} are remembered");
    locks.close().await;
    for session in kept {
        assert_eq!(session.try_lock("k").await.unwrap_err().kind(), ErrorKind::Closed);
    }
}

#[test]
async fn a_lease_that_ran_out_is_given_back_and_what_the_session_takes_next_has_a_token_of_its_own() -> Result<()> {
    let server = needs("redis-server", Server::start(&[]).await);
    let locks = RedisReentrant::connect(&server.url()).await?;
    let (session, other) = (locks.session(), locks.session());
    let lost = levels(&session, &LockOptions::new().ttl(SHORT).renew(false), 2).await?;
    let token = lost[0].fencing_token();
    // The server counts a lease for longer than its holder: here for as long as it takes to see what comes of it.
    server.ask(&["PEXPIRE", LOCK, "600000"]).await;
    for guard in lost {
        assert_eq!(guard.lost().await, LossReason::Expired);
        assert_eq!(guard.release().await?, ReleaseOutcome::AlreadyLost(LossReason::Expired));
    }
    let next = session.lock("k").await?;
    assert!(next.fencing_token() > token, "it goes on with the epoch that it lost");
    assert_eq!(counted(&server).await, 1);
    assert_eq!(next.release().await?, ReleaseOutcome::Released);
    assert!(other.try_lock("k").await?.is_some());
    Ok(())
}

#[test]
async fn two_processes_with_one_id_are_one_owner() -> Result<()> {
    let server = needs("redis-server", Server::start(&[]).await);
    let locks = RedisReentrant::connect(&server.url()).await?;
    let (here, stranger) = (locks.session_with_id("pair")?, locks.session());
    let guard = here.lock("k").await?;
    let token = guard.fencing_token().unwrap();
    let mut child = process(&server, token.get());
    eventually("the other process has a level", async || counted(&server).await == 2).await;
    assert!(stranger.try_lock("k").await?.is_none());
    assert_eq!(guard.release().await?, ReleaseOutcome::Released);
    assert!(stranger.try_lock("k").await?.is_none(), "the other process still has it");
    drop(child.stdin.take());
    assert!(child.wait().await.unwrap().success());
    let guard = stranger.try_lock("k").await?.expect("the last level frees it");
    assert!(guard.fencing_token().unwrap() > token);
    Ok(())
}

#[test]
async fn a_process_that_is_killed_leaves_its_level_to_the_lease() -> Result<()> {
    let server = needs("redis-server", Server::start(&[]).await);
    let locks = RedisReentrant::connect(&server.url()).await?;
    let (here, stranger) = (locks.session_with_id("pair")?, locks.session());
    let guard = lock(&here, &LockOptions::new().ttl(SHORT)).await?;
    let mut child = process(&server, guard.fencing_token().unwrap().get());
    eventually("the other process has a level", async || counted(&server).await == 2).await;
    child.kill().await.unwrap();
    guard.renew().await?;
    assert_eq!(guard.release().await?, ReleaseOutcome::Released);
    assert_eq!(counted(&server).await, 1);
    drop(lock(&stranger, &patiently()).await?);
    Ok(())
}

const HELPER: &str = "LEASEHOLD_REENTRANT_HELPER";

/// This program again, as another process of the owner `pair`.
fn process(server: &Server, token: u64) -> Child {
    Command::from(this_program("sessions::the_other_process"))
        .env(HELPER, format!("{token} {}", server.url()))
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .expect("this program starts again")
}

/// Not a test by itself: takes a level, and gives it back when its input ends.
#[test]
async fn the_other_process() -> Result<()> {
    let Ok(role) = env::var(HELPER) else { shows_nothing("another test runs it in a process of its own") };
    let (token, url) = role.split_once(' ').unwrap();
    let session = RedisReentrant::connect(url).await?.session_with_id("pair")?;
    let guard = lock(&session, &LockOptions::new().ttl(SHORT).wait(Wait::Never)).await?;
    assert_eq!(guard.fencing_token().unwrap().get().to_string(), token);
    tokio::task::spawn_blocking(|| std::io::stdin().read_to_end(&mut Vec::new())).await.unwrap().unwrap();
    assert_eq!(guard.release().await?, ReleaseOutcome::Released);
    Ok(())
}

#[test]
async fn beyond_the_depth_limit_it_is_an_error_and_not_a_wait() -> Result<()> {
    let server = needs("redis-server", Server::start(&[]).await);
    let locks = RedisReentrant::builder().url(server.url()).max_depth(3).connect().await?;
    let session = locks.session();
    let mut guards = levels(&session, &patiently(), 3).await?;
    let error = session.acquire(&LockKey::new("k")?, &LockOptions::new()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Backend);
    assert!(error.to_string().contains("3 times") && error.to_string().contains("max_depth"), "{error}");
    assert_eq!(counted(&server).await, 3);
    assert!(guards.iter().all(LockGuard::is_held));
    assert_eq!(guards.remove(0).release().await?, ReleaseOutcome::Released);
    guards.push(lock(&session, &LockOptions::new()).await?);
    drop(guards);
    eventually("all levels are given back", async || counted(&server).await == 0).await;
    Ok(())
}

#[test]
async fn a_thousand_levels_are_taken_and_given_back() -> Result<()> {
    let server = needs("redis-server", Server::start(&[]).await);
    let session = RedisReentrant::connect(&server.url()).await?.session();
    let guards = levels(&session, &patiently(), 1_000).await?;
    let error = session.acquire(&LockKey::new("k")?, &patiently()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Backend, "the default limit is 1,000");
    assert_eq!(counted(&server).await, 1_000);
    let tokens: std::collections::HashSet<_> = guards.iter().map(LockGuard::fencing_token).collect();
    assert_eq!(tokens.len(), 1);
    for guard in guards {
        assert_eq!(guard.release().await?, ReleaseOutcome::Released);
    }
    assert_eq!(server.ask(&["EXISTS", LOCK]).await.number(), 0);
    Ok(())
}

#[test]
async fn a_retry_after_a_lost_reply_counts_once() -> Result<()> {
    let server = needs("redis-server", Server::start(&[]).await);
    let proxy = Proxy::start(server.port());
    let session = RedisReentrant::connect(&proxy.url(&server.url())).await?.session();
    let outer = lock(&session, &patiently()).await?;
    proxy.drop_next_reply();
    let inner = lock(&session, &patiently()).await?;
    assert_eq!(proxy.dropped_replies(), 1);
    assert_eq!(inner.fencing_token(), outer.fencing_token());
    eventually("the level that nobody heard of is given back", async || counted(&server).await == 2).await;
    for guard in [outer, inner] {
        assert_eq!(guard.release().await?, ReleaseOutcome::Released);
    }
    assert_eq!(server.ask(&["EXISTS", LOCK]).await.number(), 0);
    Ok(())
}

#[test]
async fn a_release_whose_reply_is_lost_gives_back_one_level() -> Result<()> {
    let server = needs("redis-server", Server::start(&[]).await);
    let proxy = Proxy::start(server.port());
    let session = RedisReentrant::connect(&proxy.url(&server.url())).await?.session();
    let mut guards = levels(&session, &patiently(), 3).await?;
    let before = server.calls("evalsha").await;
    proxy.drop_next_reply();
    assert!(guards.remove(0).release().await.unwrap_err().is_transient());
    eventually("it is repeated in the background", async || server.calls("evalsha").await >= before + 2).await;
    assert_eq!(counted(&server).await, 2);
    guards[1].renew().await?;
    Ok(())
}

#[test]
async fn a_loss_reaches_three_levels_and_bars_the_fourth() -> Result<()> {
    let server = needs("redis-server", Server::start(&[]).await);
    let session = RedisReentrant::connect(&server.url()).await?.session();
    let mut guards = levels(&session, &patiently().ttl(SHORT), 3).await?;
    let token = guards[0].fencing_token();
    server.ask(&["DEL", LOCK]).await;
    for guard in &guards {
        assert_eq!(guard.lost().await, LossReason::Stolen);
    }
    while !guards.is_empty() {
        let error = session.acquire(&LockKey::new("k")?, &LockOptions::new()).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Lost(LossReason::Stolen));
        assert_eq!(server.ask(&["EXISTS", LOCK]).await.number(), 0);
        assert_eq!(guards.remove(0).release().await?, ReleaseOutcome::AlreadyLost(LossReason::Stolen));
    }
    assert!(lock(&session, &patiently()).await?.fencing_token() > token);
    Ok(())
}

#[test]
async fn every_level_learns_of_its_loss_while_the_server_hangs() -> Result<()> {
    let server = needs("redis-server", Server::start(&[]).await);
    let session = RedisReentrant::connect(&server.url()).await?.session();
    let guards = levels(&session, &patiently().ttl(SHORT), 3).await?;
    server.pause();
    for guard in &guards {
        assert_eq!(guard.lost().await, LossReason::Unreachable);
    }
    drop(guards);
    server.resume();
    drop(lock(&session, &patiently()).await?);
    Ok(())
}

#[test]
async fn a_loss_by_forced_release_has_that_reason() -> Result<()> {
    let server = needs("redis-server", Server::start(&[]).await);
    let locks = RedisReentrant::connect(&server.url()).await?;
    let session = locks.session_with_id("holder of it")?;
    let mut guards = levels(&session, &patiently().label("the tester").ttl(SHORT), 2).await?;
    let taken = locks.session().force_release(&LockKey::new("k")?).await?;
    assert_eq!(taken.holders[0].label.as_deref(), Some("the tester"));
    let successor = lock(&locks.session(), &patiently()).await?;
    for guard in &guards {
        assert_eq!(guard.lost().await, LossReason::ForceReleased);
    }
    guards.clear();
    successor.renew().await?;
    Ok(())
}

#[test]
async fn max_hold_ends_all_levels_and_frees_the_key_when_they_are_dropped() -> Result<()> {
    let server = needs("redis-server", Server::start(&[]).await);
    let locks = RedisReentrant::connect(&server.url()).await?;
    let session = locks.session();
    let capped = patiently().ttl(Duration::from_secs(3600)).max_hold(SHORT);
    let guards = levels(&session, &capped, 3).await?;
    for guard in guards {
        assert_eq!(guard.lost().await, LossReason::MaxHold);
        assert_eq!(guard.release().await?, ReleaseOutcome::AlreadyLost(LossReason::MaxHold));
    }
    // Not only when the lease of an hour runs out.
    drop(lock(&locks.session(), &patiently()).await?);
    Ok(())
}

#[test]
async fn a_wait_ends_with_the_lease_of_a_holder_that_is_gone() -> Result<()> {
    let server = needs("redis-server", Server::start(&[]).await);
    let locks = RedisReentrant::connect(&server.url()).await?;
    let (gone, waits) = (locks.session(), locks.session());
    for guard in levels(&gone, &LockOptions::new().ttl(SHORT).renew(false), 2).await? {
        std::mem::forget(guard);
    }
    let before = server.calls("evalsha").await;
    let limited = LockOptions::new().wait(Wait::UpTo(Duration::from_millis(100)));
    assert!(waits.acquire(&LockKey::new("k")?, &limited).await?.is_none());
    assert_eq!(counted(&server).await, 2, "a wait that was given up left something");
    drop(lock(&waits, &patiently()).await?);
    let asked = server.calls("evalsha").await - before;
    assert!(asked < 40, "{asked} questions in one wait of at most two seconds");
    Ok(())
}

#[test]
async fn closing_tells_the_guards_of_all_sessions_and_leaves_nothing() -> Result<()> {
    let server = needs("redis-server", Server::start(&[]).await);
    let locks = RedisReentrant::connect(&server.url()).await?;
    let (one, two) = (locks.session(), locks.session());
    let mut guards = levels(&one, &patiently(), 3).await?;
    guards.push(two.lock("other").await?);
    drop(guards.remove(0));
    // The guards of a session outlive it.
    drop(one);
    locks.close().await;
    for guard in &guards {
        assert_eq!(guard.loss(), Some(LossReason::Shutdown));
    }
    for key in [LOCK, "{leasehold:other}:lock"] {
        assert_eq!(server.ask(&["EXISTS", key]).await.number(), 0, "{key}");
    }
    for session in [two, locks.session()] {
        assert_eq!(session.try_lock("k").await.unwrap_err().kind(), ErrorKind::Closed);
    }
    eventually("nobody is connected", async || server.clients().await == 0).await;
    Ok(())
}

#[test]
async fn closing_a_session_leaves_the_others() -> Result<()> {
    let server = needs("redis-server", Server::start(&[]).await);
    let locks = RedisReentrant::connect(&server.url()).await?;
    let (one, two) = (locks.session(), locks.session());
    let guards = levels(&one, &patiently(), 2).await?;
    let other = two.lock("other").await?;
    one.close().await;
    assert_eq!(guards[1].loss(), Some(LossReason::Shutdown));
    other.renew().await?;
    assert!(two.try_lock("k").await?.is_some());
    Ok(())
}

#[test]
async fn the_client_of_the_caller_is_used_and_left_alone() -> Result<()> {
    let server = needs("redis-server", Server::start(&[]).await);
    let mut builder = Builder::from_config(Config::from_url(&server.url()).unwrap());
    let client = builder.set_policy(ReconnectPolicy::default()).build().unwrap();
    client.init().await.unwrap();
    let locks = RedisReentrant::from_client(client.clone());
    let session = locks.session();
    let guards = levels(&session, &patiently(), 2).await?;
    locks.close().await;
    assert_eq!(guards[0].loss(), Some(LossReason::Shutdown));
    let pong: String = client.ping(None).await.unwrap();
    assert_eq!(pong, "PONG");
    Ok(())
}
