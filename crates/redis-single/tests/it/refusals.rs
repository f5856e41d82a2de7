//! What cannot work is refused with a typed error, and nothing changes. The tests start the servers they need;
//! without `redis-server` they are ignored.

use std::time::Duration;

use leasehold_redis_single::{Admin, ErrorKind, LockKey, LockOptions, LockerExt, RedisSingle, Result, Wait};
use leasehold_testkit::redis::{
    Answer, Recorder, Server, a_claim_that_is_refused_leaves_no_lock,
    a_grant_that_was_overwritten_is_lost_and_touches_no_other, a_release_by_force_is_told,
    a_release_by_force_signals_nobody, commands_are_taken_from_a_holder,
    what_somebody_else_wrote_is_named_and_left_alone,
};
use leasehold_testkit::{eventually, needs, shown, test};

use crate::waiters::{FENCE, LINE, LOCK};

fn patiently() -> LockOptions {
    LockOptions::new().wait(Wait::UpTo(Duration::from_secs(60)))
}

#[test]
async fn bad_settings_are_refused_before_anything_is_sent() {
    let server = needs("redis-server", Server::start(&[]).await);
    let url = server.url();
    // Who asked whether it is up is gone a moment later.
    eventually("the server has no client", async || server.clients().await == 0).await;
    for builder in [
        RedisSingle::builder(),
        RedisSingle::builder().url("memcached://127.0.0.1"),
        RedisSingle::builder().url(&url).namespace(""),
        RedisSingle::builder().url(&url).namespace("x".repeat(65)),
        RedisSingle::builder().url(format!("{url}?namespace=")),
        RedisSingle::builder().url(&url).command_timeout(Duration::ZERO),
        RedisSingle::builder().url(&url).command_timeout(Duration::from_secs(61)),
    ] {
        let error = builder.clone().connect().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidOptions, "{builder:?}: {error}");
        assert_eq!(error.backend(), Some("redis-single"));
    }
    assert_eq!(server.clients().await, 0);
}

#[test]
async fn no_password_is_ever_shown() {
    const CANARY: &str = "hunter2-canary";
    let recorder = Recorder::start();
    let server = needs("redis-server", Server::start(&["--requirepass", CANARY]).await);
    let address = format!("127.0.0.1:{}", server.port());
    let mut told = Vec::new();
    for url in [
        format!("redis://:{CANARY}x@{address}"),
        format!("redis://ada:{CANARY}@{address}"),
        format!("redis://:{CANARY}@{address}/255"),
        format!("redis://:{CANARY}@127.0.0.1:1"),
        format!("redis://:{CANARY}@{address}?nmspace=a"),
        format!("redis://:{CANARY}@{address}#{CANARY}"),
        format!("redis://{CANARY}@{address}"),
        format!("redis//:{CANARY}@{address}"),
        format!("redis-cluster://:{CANARY}@{address}"),
        format!("redis-sentinel://:{CANARY}@{address}?sentinelServiceName=m&sentinelPassword={CANARY}"),
    ] {
        let builder = RedisSingle::builder().url(&url);
        told.push(format!("{builder:?}"));
        told.push(shown(&builder.connect().await.unwrap_err()));
    }
    let locks = RedisSingle::connect(&server.url()).await.unwrap();
    let guard = locks.lock("k").await.unwrap();
    told.push(format!("{locks:?} {guard:?} {:?}", locks.inspect(guard.key()).await.unwrap()));
    server.ask(&["CONFIG", "SET", "requirepass", &format!("{CANARY}y")]).await;
    drop(guard);
    locks.close().await;
    assert!(recorder.recorded().contains("redis"), "nothing was recorded");
    told.push(recorder.recorded());
    for text in told {
        assert!(!text.contains(CANARY), "{text}");
    }
}

#[test]
async fn a_user_who_may_not_write_leaves_no_lock_behind() -> Result<()> {
    let server = needs("redis-server", Server::start(&[]).await);
    let denied = ["-set", "-mget", "-exists", "-time"];
    a_claim_that_is_refused_leaves_no_lock(&server, &denied, async |url| RedisSingle::connect(&url).await).await
}

#[test]
async fn an_entry_of_another_type_is_named_and_left_alone() -> Result<()> {
    let server = needs("redis-server", Server::start(&[]).await);
    let locks = RedisSingle::connect(&server.url()).await?;
    let foreign = [&["LPUSH", LOCK, "theirs"][..], &["LPUSH", FENCE, "theirs"], &["HSET", LOCK, "a", "b"]];
    what_somebody_else_wrote_is_named_and_left_alone(&server, &locks, &foreign).await
}

#[test]
async fn a_hash_under_the_name_of_a_queue_that_is_not_one_is_left_alone() -> Result<()> {
    let server = needs("redis-server", Server::start(&[]).await);
    let (locks, others) = (RedisSingle::connect(&server.url()).await?, RedisSingle::connect(&server.url()).await?);
    let (key, name) = (LockKey::new("k")?, LINE);
    server.ask(&["HSET", name, "name", "bob", "age", "7"]).await;
    let held = locks.acquire(&key, &patiently()).await?.unwrap();
    let waits = others.acquire(&key, &LockOptions::new().wait(Wait::UpTo(Duration::from_millis(300)))).await?;
    assert!(waits.is_none());
    held.release().await?;
    drop(locks.acquire(&key, &patiently()).await?.unwrap());
    let theirs = ["name", "bob", "age", "7"].map(|text| Answer::Text(text.into()));
    assert_eq!(server.ask(&["HGETALL", name]).await, Answer::List(theirs.into()));
    assert_eq!(server.ask(&["PTTL", name]).await.number(), -1);
    Ok(())
}

#[test]
async fn a_grant_that_was_overwritten_with_another_type_is_lost_and_touches_no_other() -> Result<()> {
    let server = needs("redis-server", Server::start(&[]).await);
    let locks = RedisSingle::connect(&server.url()).await?;
    a_grant_that_was_overwritten_is_lost_and_touches_no_other(&server, &locks).await
}

#[test]
async fn an_entry_that_never_expires_is_an_error_until_it_is_released_by_force() -> Result<()> {
    let server = needs("redis-server", Server::start(&[]).await);
    let locks = RedisSingle::connect(&server.url()).await?;
    server.ask(&["SET", LOCK, "somebody's"]).await;
    let error = locks.acquire(&LockKey::new("k")?, &patiently()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Backend);
    assert!(error.to_string().contains("`{leasehold:k}:lock` never expires"), "{error}");
    let freed = locks.force_release(&LockKey::new("k")?).await?;
    assert_eq!((freed.holders.len(), freed.holders[0].token), (1, None));
    assert!(locks.try_lock("k").await?.is_some());
    Ok(())
}

#[test]
async fn a_counter_that_cannot_count_is_an_error() -> Result<()> {
    let server = needs("redis-server", Server::start(&[]).await);
    let locks = RedisSingle::connect(&server.url()).await?;
    for (counter, told) in [
        ("many", "not a counter"),
        ("epoch 140737488355327", "2248"),
        ("epoch 99999999999999999999", "2248"),
        ("epoch -1", "not a counter"),
        ("epoch 1e3", "not a counter"),
        ("28000000000000", "not a counter"),
        ("epoch2 28000000000000", "another version"),
    ] {
        server.ask(&["SET", FENCE, counter]).await;
        let error = locks.try_lock("k").await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Backend);
        assert!(error.to_string().contains(told), "{counter}: {error}");
        assert_eq!(server.ask(&["GET", FENCE]).await.text(), counter);
        assert_eq!(server.ask(&["EXISTS", LOCK]).await.number(), 0);
    }
    server.ask(&["SET", FENCE, "epoch 140737488355325"]).await;
    let guard = locks.try_lock("k").await?.unwrap();
    assert_eq!(guard.fencing_token().unwrap().epoch(), 140_737_488_355_326);
    Ok(())
}

#[test]
async fn a_permission_that_is_taken_from_a_holder_is_named_and_the_guard_is_lost_at_its_deadline() -> Result<()> {
    let server = needs("redis-server", Server::start(&[]).await);
    let taken = [("-pexpire", "(PEXPIRE)"), ("-get", "(GET)")];
    commands_are_taken_from_a_holder(&server, &taken, async |url| RedisSingle::connect(&url).await).await
}

#[test]
async fn a_release_by_force_that_may_not_publish_says_so() -> Result<()> {
    let server = needs("redis-server", Server::start(&[]).await);
    a_release_by_force_signals_nobody(&server, async |url| RedisSingle::connect(&url).await).await
}

#[test]
async fn the_process_of_a_holder_is_told_of_a_release_by_force() -> Result<()> {
    let server = needs("redis-server", Server::start(&[]).await);
    for queue in [true, false] {
        let builder = RedisSingle::builder().url(server.url()).queue(queue);
        a_release_by_force_is_told(&builder.clone().backend().await?, &builder.backend().await?).await?;
    }
    Ok(())
}
