//! What cannot work is refused with a typed error, and nothing changes.

use std::time::Duration;

use leasehold_redis_reentrant::{
    Admin, ErrorKind, LockKey, LockOptions, LockerExt, RedisReentrant, ReleaseOutcome, Result, Wait,
};
use leasehold_testkit::redis::{
    Server, a_claim_that_is_refused_leaves_no_lock, a_grant_that_was_overwritten_is_lost_and_touches_no_other,
    a_release_by_force_is_told, a_release_by_force_signals_nobody, commands_are_taken_from_a_holder, user,
    what_somebody_else_wrote_is_named_and_left_alone,
};
use leasehold_testkit::{needs, test};

const LOCK: &str = "{leasehold:k}:lock";
const FENCE: &str = "{leasehold:afmc}:epoch";

fn patiently() -> LockOptions {
    LockOptions::new().wait(Wait::UpTo(Duration::from_secs(60)))
}

#[test]
async fn a_depth_that_cannot_be_is_refused() {
    for depth in [0, 100_001] {
        let error = RedisReentrant::builder().url("redis://127.0.0.1:1").max_depth(depth).connect().await.unwrap_err();
        assert_eq!((error.kind(), error.backend()), (ErrorKind::InvalidOptions, Some("redis-reentrant")), "{error}");
    }
}

#[test]
async fn what_a_user_may_not_do_is_named_and_leaves_no_lock_behind() -> Result<()> {
    let server = needs("redis-server", Server::start(&[]).await);
    let connect = |url: String| async move { RedisReentrant::connect(&url).await.map(|locks| locks.session()) };
    let denied = ["-hmget", "-hlen", "-get", "-time", "-set", "-hset", "-pexpire"];
    a_claim_that_is_refused_leaves_no_lock(&server, &denied, connect).await?;
    commands_are_taken_from_a_holder(&server, &[("-pexpire", "(PEXPIRE)"), ("-hmget", "(HMGET)")], connect).await?;
    a_release_by_force_signals_nobody(&server, connect).await
}

#[test]
async fn a_further_level_that_the_server_refuses_is_not_counted() -> Result<()> {
    let server = needs("redis-server", Server::start(&[]).await);
    let url = user(&server, &[]).await;
    let session = RedisReentrant::connect(&url).await?.session();
    let outer = session.lock("k").await?;
    server.ask(&["ACL", "SETUSER", "app", "-pexpire"]).await;
    let longer = patiently().ttl(Duration::from_secs(3600));
    let error = session.acquire(&LockKey::new("k")?, &longer).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Backend);
    assert_eq!(server.ask(&["HLEN", LOCK]).await.number(), 4);
    assert_eq!(outer.release().await?, ReleaseOutcome::Released);
    assert_eq!(server.ask(&["EXISTS", LOCK]).await.number(), 0);
    Ok(())
}

#[test]
async fn what_is_not_ours_is_named_and_left_alone_and_a_grant_that_it_overwrites_is_lost() -> Result<()> {
    let server = needs("redis-server", Server::start(&[]).await);
    let session = RedisReentrant::connect(&server.url()).await?.session();
    let foreign = [
        &["LPUSH", LOCK, "theirs"][..],
        &["LPUSH", FENCE, "theirs"],
        &["SET", FENCE, "many"],
        &["HSET", LOCK, "a", "b"],
        &["HSET", LOCK, "owner", "x", "epoch2", "7"],
        &["HSET", LOCK, "owner", "x", "epoch", "y"],
        &["HSET", LOCK, "owner", "x", "epoch", "9007199254740992"],
        &["SET", LOCK, "x"],
    ];
    what_somebody_else_wrote_is_named_and_left_alone(&server, &session, &foreign).await?;
    a_grant_that_was_overwritten_is_lost_and_touches_no_other(&server, &session).await
}

#[test]
async fn an_entry_that_never_expires_is_an_error_until_it_is_released_by_force() -> Result<()> {
    let server = needs("redis-server", Server::start(&[]).await);
    let ours = RedisReentrant::connect(&server.url()).await?.session();
    let theirs = RedisReentrant::connect(&server.url()).await?.session();
    let mut held = theirs.lock("k").await?;
    server.ask(&["PERSIST", LOCK]).await;
    let error = ours.acquire(&LockKey::new("k")?, &patiently()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Backend);
    assert!(error.to_string().contains("`{leasehold:k}:lock` never expires"), "{error}");
    // Its owner heals it with the next level or renewal.
    held = {
        let inner = theirs.lock("k").await?;
        drop(held);
        inner
    };
    assert!(server.ask(&["PTTL", LOCK]).await.number() > 0);
    server.ask(&["PERSIST", LOCK]).await;
    held.renew().await?;
    assert!(server.ask(&["PTTL", LOCK]).await.number() > 0);
    server.ask(&["PERSIST", LOCK]).await;
    let freed = ours.force_release(&LockKey::new("k")?).await?;
    assert_eq!((freed.holders.len(), freed.holders[0].remaining), (1, None));
    assert!(ours.try_lock("k").await?.is_some());
    Ok(())
}

#[test]
async fn the_process_of_a_holder_is_told_of_a_release_by_force() -> Result<()> {
    let server = needs("redis-server", Server::start(&[]).await);
    let builder = RedisReentrant::builder().url(server.url());
    a_release_by_force_is_told(&builder.clone().backend().await?, &builder.backend().await?).await
}
