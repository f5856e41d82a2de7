//! What cannot work is refused with a typed error, and nothing changes. The tests start the servers they need;
//! without `redis-server` they are ignored.

use std::time::Duration;

use leasehold_redis_reentrant::{
    Admin, ErrorKind, LockKey, LockOptions, LockerExt, LossReason, RedisReentrant, ReleaseOutcome, Result, Wait,
};
use leasehold_testkit::redis::{
    Answer, LeastUser, Server, a_release_by_force_is_told, a_release_by_force_signals_nobody,
    commands_are_taken_from_a_holder,
};
use leasehold_testkit::{eventually, needs, shown, test};

async fn user(server: &Server, rules: &[&str]) -> String {
    let words = [&["ACL", "SETUSER", "app", "reset", "on", ">pw"], rules].concat();
    assert_eq!(server.ask(&words).await, Answer::Text("OK".into()));
    server.url().replace("redis://", "redis://app:pw@")
}

fn patiently() -> LockOptions {
    LockOptions::new().wait(Wait::UpTo(Duration::from_secs(60)))
}

#[test]
async fn bad_settings_are_refused_before_anything_is_sent() {
    let server = needs("redis-server", Server::start(&[]).await);
    let url = server.url();
    // Who asked whether it is up is gone a moment later.
    eventually("the server has no client", async || server.clients().await == 0).await;
    let builder = || RedisReentrant::builder().url(&url);
    for builder in [
        RedisReentrant::builder(),
        RedisReentrant::builder().url("memcached://127.0.0.1"),
        builder().namespace(""),
        builder().namespace("x".repeat(65)),
        builder().command_timeout(Duration::ZERO),
        builder().max_depth(0),
        builder().max_depth(100_001),
    ] {
        let error = builder.clone().connect().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidOptions, "{builder:?}: {error}");
        assert_eq!(error.backend(), Some("redis-reentrant"));
    }
    assert_eq!(server.clients().await, 0);
}

#[test]
async fn no_password_is_ever_shown() {
    const CANARY: &str = "hunter2-canary";
    let server = needs("redis-server", Server::start(&["--requirepass", CANARY]).await);
    let address = format!("127.0.0.1:{}", server.port());
    let mut told = Vec::new();
    for url in [
        format!("redis://:{CANARY}x@{address}"),
        format!("redis://ada:{CANARY}@{address}"),
        format!("redis://:{CANARY}@127.0.0.1:1"),
        format!("redis://:{CANARY}@{address}?nmspace=a"),
        format!("redis//:{CANARY}@{address}"),
    ] {
        let builder = RedisReentrant::builder().url(&url);
        told.push(format!("{builder:?}"));
        told.push(shown(&builder.connect().await.unwrap_err()));
    }
    let locks = RedisReentrant::connect(&server.url()).await.unwrap();
    let session = locks.session();
    let guard = session.lock("k").await.unwrap();
    told.push(format!("{locks:?} {session:?} {guard:?}"));
    for text in told {
        assert!(!text.contains(CANARY), "{text}");
    }
}

#[test]
async fn the_least_privileges_are_enough_for_everything() -> Result<()> {
    let server = needs("redis-server", Server::start(&[]).await);
    let url = LeastUser::of(include_str!("../../README.md")).make(&server, &[]).await;
    let here = RedisReentrant::connect(&url).await?.session();
    // As another process: within one, nobody listens while it is known who has the key.
    let there = RedisReentrant::connect(&url).await?.session();
    let key = LockKey::new("k")?;
    let (outer, inner) = (here.lock("k").await?, here.lock("k").await?);
    outer.renew().await?;
    let waiting = tokio::spawn({
        let there = there.clone();
        async move { there.acquire(&LockKey::new("k")?, &patiently()).await }
    });
    eventually(
        "the waiter listens",
        async || matches!(server.ask(&["PUBSUB", "CHANNELS"]).await, Answer::List(channels) if channels.len() == 1),
    )
    .await;
    assert_eq!(here.list("", None).await?.keys.len(), 1);
    assert_eq!(outer.release().await?, ReleaseOutcome::Released);
    assert_eq!(inner.release().await?, ReleaseOutcome::Released);
    let guard = waiting.await.unwrap()?.unwrap();
    assert_eq!(here.inspect(&key).await?.holders.len(), 1);
    assert_eq!(here.force_release(&key).await?.holders.len(), 1);
    assert_eq!(guard.renew().await.unwrap_err().kind(), ErrorKind::Lost(LossReason::ForceReleased));
    Ok(())
}

#[test]
async fn a_user_who_may_not_write_leaves_no_lock_behind() -> Result<()> {
    let server = needs("redis-server", Server::start(&[]).await);
    for denied in ["-hmget", "-hlen", "-get", "-time", "-set", "-hset", "-pexpire"] {
        let url = user(&server, &["+@all", "~*", "&*", denied]).await;
        let error = RedisReentrant::connect(&url).await?.session().try_lock("k").await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Backend, "{denied}: {}", shown(&error));
        assert_eq!(server.ask(&["EXISTS", "{leasehold:k}:lock"]).await.number(), 0, "{denied}");
    }
    Ok(())
}

#[test]
async fn a_further_level_that_the_server_refuses_is_not_counted() -> Result<()> {
    let server = needs("redis-server", Server::start(&[]).await);
    let url = user(&server, &["+@all", "~*", "&*"]).await;
    let session = RedisReentrant::connect(&url).await?.session();
    let outer = session.lock("k").await?;
    server.ask(&["ACL", "SETUSER", "app", "-pexpire"]).await;
    let longer = patiently().ttl(Duration::from_secs(3600));
    let error = session.acquire(&LockKey::new("k")?, &longer).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Backend);
    assert_eq!(server.ask(&["HLEN", "{leasehold:k}:lock"]).await.number(), 4);
    assert_eq!(outer.release().await?, ReleaseOutcome::Released);
    assert_eq!(server.ask(&["EXISTS", "{leasehold:k}:lock"]).await.number(), 0);
    Ok(())
}

#[test]
async fn an_entry_of_another_type_is_named_and_left_alone() -> Result<()> {
    let server = needs("redis-server", Server::start(&[]).await);
    let session = RedisReentrant::connect(&server.url()).await?.session();
    let key = LockKey::new("typed")?;
    for name in ["{leasehold:typed}:lock", "{leasehold:acdc}:epoch"] {
        server.ask(&["LPUSH", name, "theirs"]).await;
        let error = session.acquire(&key, &patiently()).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Backend);
        assert!(error.to_string().contains(&format!("`{name}`")) && error.to_string().contains("list"), "{error}");
        assert_eq!(server.ask(&["LRANGE", name, "0", "-1"]).await, Answer::List(vec![Answer::Text("theirs".into())]));
        assert_eq!(server.ask(&["DBSIZE"]).await.number(), 1, "nothing was left behind");
        server.ask(&["DEL", name]).await;
    }
    let name = "{leasehold:typed}:lock";
    for theirs in [
        &["HSET", name, "a", "b"][..],
        &["HSET", name, "owner", "x", "epoch2", "7"],
        &["HSET", name, "owner", "x", "epoch", "y"],
        &["HSET", name, "owner", "x", "epoch", "9007199254740992"],
        &["SET", name, "x"],
    ] {
        server.ask(&["DEL", name]).await;
        server.ask(theirs).await;
        let before = server.ask(&["DUMP", name]).await;
        for error in [
            session.acquire(&key, &patiently()).await.unwrap_err(),
            session.inspect(&key).await.unwrap_err(),
            session.force_release(&key).await.unwrap_err(),
        ] {
            assert_eq!(error.kind(), ErrorKind::Backend);
            assert!(error.to_string().contains(name), "{error}");
        }
        assert_eq!((server.ask(&["DUMP", name]).await, server.ask(&["DBSIZE"]).await.number()), (before, 1));
    }
    for refused in [session.inspect(&key).await, session.force_release(&key).await] {
        assert!(refused.unwrap_err().to_string().contains("a namespace of its own"));
    }
    assert!(session.list("", None).await?.keys.is_empty());
    Ok(())
}

#[test]
async fn a_grant_that_was_overwritten_with_another_type_is_lost_and_touches_no_other() -> Result<()> {
    let server = needs("redis-server", Server::start(&[]).await);
    let session = RedisReentrant::connect(&server.url()).await?.session();
    let options = LockOptions::new().ttl(Duration::from_secs(2));
    let mut guards = Vec::new();
    for name in ["a", "b", "c"] {
        guards.push(session.acquire(&LockKey::new(name)?, &options).await?.unwrap());
    }
    server.ask(&["DEL", "{leasehold:b}:lock"]).await;
    server.ask(&["SADD", "{leasehold:b}:lock", "theirs"]).await;
    assert_eq!(guards[1].lost().await, LossReason::Stolen);
    let later = server.calls("pexpire").await + 4;
    eventually("the others are renewed", async || server.calls("pexpire").await >= later).await;
    assert!(guards[0].is_held() && guards[2].is_held());
    drop(guards);
    eventually("their keys are free", async || server.ask(&["EXISTS", "{leasehold:a}:lock"]).await.number() == 0).await;
    assert_eq!(server.ask(&["SCARD", "{leasehold:b}:lock"]).await.number(), 1);
    Ok(())
}

#[test]
async fn an_entry_that_never_expires_is_an_error_until_it_is_released_by_force() -> Result<()> {
    let server = needs("redis-server", Server::start(&[]).await);
    let ours = RedisReentrant::connect(&server.url()).await?.session();
    let theirs = RedisReentrant::connect(&server.url()).await?.session();
    let mut held = theirs.lock("k").await?;
    server.ask(&["PERSIST", "{leasehold:k}:lock"]).await;
    let error = ours.acquire(&LockKey::new("k")?, &patiently()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Backend);
    assert!(error.to_string().contains("`{leasehold:k}:lock` never expires"), "{error}");
    // Its owner heals it with the next level or renewal.
    held = {
        let inner = theirs.lock("k").await?;
        drop(held);
        inner
    };
    assert!(server.ask(&["PTTL", "{leasehold:k}:lock"]).await.number() > 0);
    server.ask(&["PERSIST", "{leasehold:k}:lock"]).await;
    held.renew().await?;
    assert!(server.ask(&["PTTL", "{leasehold:k}:lock"]).await.number() > 0);
    server.ask(&["PERSIST", "{leasehold:k}:lock"]).await;
    let freed = ours.force_release(&LockKey::new("k")?).await?;
    assert_eq!((freed.holders.len(), freed.holders[0].remaining), (1, None));
    assert!(ours.try_lock("k").await?.is_some());
    Ok(())
}

#[test]
async fn a_counter_that_cannot_count_is_an_error() -> Result<()> {
    let server = needs("redis-server", Server::start(&[]).await);
    let session = RedisReentrant::connect(&server.url()).await?.session();
    for (counter, told) in [
        ("many", "not a counter"),
        ("epoch 140737488355327", "2248"),
        ("epoch 99999999999999999999", "2248"),
        ("epoch -1", "not a counter"),
        ("epoch 1e3", "not a counter"),
        ("28000000000000", "not a counter"),
        ("epoch2 28000000000000", "another version"),
    ] {
        server.ask(&["SET", "{leasehold:afmc}:epoch", counter]).await;
        let error = session.try_lock("k").await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Backend);
        assert!(error.to_string().contains(told), "{counter}: {error}");
        assert_eq!(server.ask(&["GET", "{leasehold:afmc}:epoch"]).await.text(), counter);
        assert_eq!(server.ask(&["EXISTS", "{leasehold:k}:lock"]).await.number(), 0);
    }
    server.ask(&["SET", "{leasehold:afmc}:epoch", "epoch 140737488355325"]).await;
    let guard = session.try_lock("k").await?.unwrap();
    assert_eq!(guard.fencing_token().unwrap().epoch(), 140_737_488_355_326);
    Ok(())
}

#[test]
async fn a_full_server_refuses_for_the_moment_and_what_is_held_can_be_given_back() -> Result<()> {
    let server = needs("redis-server", Server::start(&[]).await);
    let session = RedisReentrant::connect(&server.url()).await?.session();
    let (outer, inner) = (session.lock("held").await?, session.lock("held").await?);
    server.ask(&["CONFIG", "SET", "maxmemory", "1"]).await;
    for key in ["k", "held"] {
        let error = session.try_lock(key).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{}", shown(&error));
        assert!(error.to_string().contains("out of memory"), "{error}");
    }
    outer.renew().await?;
    for guard in [outer, inner] {
        assert_eq!(guard.release().await?, ReleaseOutcome::Released);
    }
    assert_eq!(server.ask(&["EXISTS", "{leasehold:held}:lock"]).await.number(), 0);
    Ok(())
}

#[test]
async fn a_permission_that_is_taken_from_a_holder_is_named_and_the_guard_is_lost_at_its_deadline() -> Result<()> {
    let server = needs("redis-server", Server::start(&[]).await);
    let taken = [("-pexpire", "(PEXPIRE)"), ("-hmget", "(HMGET)")];
    commands_are_taken_from_a_holder(&server, &taken, async |url| Ok(RedisReentrant::connect(&url).await?.session()))
        .await
}

#[test]
async fn a_release_by_force_that_may_not_publish_says_so() -> Result<()> {
    let server = needs("redis-server", Server::start(&[]).await);
    a_release_by_force_signals_nobody(&server, async |url| Ok(RedisReentrant::connect(&url).await?.session())).await
}

#[test]
async fn the_process_of_a_holder_is_told_of_a_release_by_force() -> Result<()> {
    let server = needs("redis-server", Server::start(&[]).await);
    let builder = RedisReentrant::builder().url(server.url());
    a_release_by_force_is_told(&builder.clone().backend().await?, &builder.backend().await?).await
}
