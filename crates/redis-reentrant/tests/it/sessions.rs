//! What a session promises, on real servers.

use std::time::Duration;

use leasehold_redis_reentrant::{
    Client, ErrorKind, LockGuard, LockKey, LockOptions, LockerExt, LossReason, RedisReentrant, ReleaseOutcome, Result,
    Session, Wait,
};
use leasehold_testkit::redis::Server;
use leasehold_testkit::{eventually, needs, test};

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

/// A client of its own stands for a process of its own.
#[test]
async fn two_processes_with_one_id_are_one_owner() -> Result<()> {
    let server = needs("redis-server", Server::start(&[]).await);
    let (here, there) = (RedisReentrant::connect(&server.url()).await?, RedisReentrant::connect(&server.url()).await?);
    let (ours, theirs, stranger) = (here.session_with_id("pair")?, there.session_with_id("pair")?, here.session());
    let (outer, inner) = (lock(&ours, &patiently()).await?, lock(&theirs, &patiently()).await?);
    assert_eq!((inner.fencing_token(), counted(&server).await), (outer.fencing_token(), 2));
    assert_eq!(outer.release().await?, ReleaseOutcome::Released);
    assert!(stranger.try_lock("k").await?.is_none(), "the other process still has it");
    assert_eq!(inner.release().await?, ReleaseOutcome::Released);

    // One that is killed leaves its level to the lease.
    std::mem::forget(lock(&theirs, &LockOptions::new().ttl(SHORT).renew(false)).await?);
    let guard = lock(&ours, &LockOptions::new().ttl(SHORT)).await?;
    guard.renew().await?;
    assert_eq!(guard.release().await?, ReleaseOutcome::Released);
    assert_eq!(counted(&server).await, 1);
    drop(lock(&stranger, &patiently()).await?);
    Ok(())
}

#[test]
async fn beyond_the_depth_limit_it_is_an_error_and_not_a_wait() -> Result<()> {
    let server = needs("redis-server", Server::start(&[]).await);
    let builder = || RedisReentrant::builder().url(server.url());
    // The second is what the README says of the default.
    for (builder, most) in [(builder().max_depth(3), 3_usize), (builder(), 1_000)] {
        let session = builder.connect().await?.session();
        let mut guards = levels(&session, &patiently(), most).await?;
        let error = session.acquire(&LockKey::new("k")?, &LockOptions::new()).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Backend);
        let told = error.to_string().replace(',', "");
        assert!(told.contains(&format!("{most} times")) && told.contains("max_depth"), "{error}");
        assert_eq!(usize::try_from(counted(&server).await).unwrap(), most);
        assert!(guards.iter().all(LockGuard::is_held));
        assert_eq!(guards.remove(0).release().await?, ReleaseOutcome::Released);
        guards.push(lock(&session, &LockOptions::new()).await?);
        for guard in guards {
            assert_eq!(guard.release().await?, ReleaseOutcome::Released);
        }
        assert_eq!(server.ask(&["EXISTS", LOCK]).await.number(), 0);
    }
    Ok(())
}

#[test]
async fn closing_a_session_leaves_the_others_and_closing_all_tells_their_guards_and_leaves_nothing() -> Result<()> {
    let server = needs("redis-server", Server::start(&[]).await);
    let locks = RedisReentrant::connect(&server.url()).await?;
    let (one, two, three) = (locks.session(), locks.session(), locks.session());
    let guards = levels(&one, &patiently(), 2).await?;
    let other = two.lock("other").await?;
    one.close().await;
    assert_eq!(guards[1].loss(), Some(LossReason::Shutdown));
    other.renew().await?;
    assert!(two.try_lock("k").await?.is_some());

    let mut guards = levels(&three, &patiently(), 3).await?;
    guards.push(other);
    drop(guards.remove(0));
    // The guards of a session outlive it.
    drop(three);
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
