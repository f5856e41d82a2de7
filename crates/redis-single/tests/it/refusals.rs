//! What cannot work is refused with a typed error, and nothing changes. The tests start the servers they need;
//! without `redis-server` they are ignored.

use std::time::Duration;

use leasehold_redis_single::{
    Admin, ErrorKind, LockKey, LockOptions, LockerExt, LossReason, RedisSingle, Result, Wait,
};
use leasehold_testkit::redis::{
    Answer, Recorder, Server, a_release_by_force_is_told, a_release_by_force_signals_nobody,
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
async fn a_wrong_or_missing_password_says_which_server() {
    let server = needs("redis-server", Server::start(&["--requirepass", "right"]).await);
    for login in ["", ":wrong@", "ada:right@"] {
        let url = format!("redis://{login}127.0.0.1:{}", server.port());
        let error = RedisSingle::connect(&url).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Backend, "{error}");
        assert!(!error.is_transient());
        let told = error.to_string();
        assert!(told.contains("connect on redis-single") && told.contains(&server.port().to_string()), "{told}");
        assert!(told.contains("password"), "{told}");
    }
}

#[test]
async fn a_user_who_may_not_write_leaves_nothing_behind() -> Result<()> {
    let server = needs("redis-server", Server::start(&[]).await);
    for denied in ["-set", "-mget", "-exists", "-time"] {
        let url = user(&server, &["+@all", "~*", "&*", denied]).await;
        let error = RedisSingle::connect(&url).await?.try_lock("k").await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Backend, "{denied}: {}", shown(&error));
        assert_eq!(server.ask(&["DBSIZE"]).await.number(), 0, "{denied}");
    }
    Ok(())
}

#[test]
async fn an_entry_of_another_type_is_named_and_left_alone() -> Result<()> {
    let server = needs("redis-server", Server::start(&[]).await);
    let locks = RedisSingle::connect(&server.url()).await?;
    for name in ["{leasehold:typed}:lock", "{leasehold:acdc}:epoch"] {
        server.ask(&["LPUSH", name, "theirs"]).await;
        let error = locks.acquire(&LockKey::new("typed")?, &patiently()).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Backend);
        assert!(error.to_string().contains(&format!("`{name}`")) && error.to_string().contains("list"), "{error}");
        assert_eq!(server.ask(&["LRANGE", name, "0", "-1"]).await, Answer::List(vec![Answer::Text("theirs".into())]));
        assert_eq!(server.ask(&["DBSIZE"]).await.number(), 1, "nothing was left behind");
        server.ask(&["DEL", name]).await;
    }
    let key = LockKey::new("typed")?;
    server.ask(&["HSET", "{leasehold:typed}:lock", "a", "b"]).await;
    for refused in [locks.inspect(&key).await, locks.force_release(&key).await] {
        assert_eq!(refused.unwrap_err().kind(), ErrorKind::Backend);
    }
    assert!(locks.list("", None).await?.keys.is_empty());
    Ok(())
}

#[test]
async fn a_hash_under_the_name_of_a_queue_that_is_not_one_is_left_alone() -> Result<()> {
    let server = needs("redis-server", Server::start(&[]).await);
    let (locks, others) = (RedisSingle::connect(&server.url()).await?, RedisSingle::connect(&server.url()).await?);
    let (key, name) = (LockKey::new("k")?, "{leasehold:k}:queue");
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
    let options = LockOptions::new().ttl(Duration::from_secs(2));
    let mut guards = Vec::new();
    for name in ["a", "b", "c"] {
        guards.push(locks.acquire(&LockKey::new(name)?, &options).await?.unwrap());
    }
    server.ask(&["DEL", "{leasehold:b}:lock"]).await;
    server.ask(&["SADD", "{leasehold:b}:lock", "theirs"]).await;
    let reason = guards[1].lost().await;
    assert_eq!(reason, LossReason::Stolen);
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
    let locks = RedisSingle::connect(&server.url()).await?;
    server.ask(&["SET", "{leasehold:k}:lock", "somebody's"]).await;
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
        server.ask(&["SET", "{leasehold:afmc}:epoch", counter]).await;
        let error = locks.try_lock("k").await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Backend);
        assert!(error.to_string().contains(told), "{counter}: {error}");
        assert_eq!(server.ask(&["GET", "{leasehold:afmc}:epoch"]).await.text(), counter);
        assert_eq!(server.ask(&["EXISTS", "{leasehold:k}:lock"]).await.number(), 0);
    }
    server.ask(&["SET", "{leasehold:afmc}:epoch", "epoch 140737488355325"]).await;
    let guard = locks.try_lock("k").await?.unwrap();
    assert_eq!(guard.fencing_token().unwrap().epoch(), 140_737_488_355_326);
    Ok(())
}

#[test]
async fn eviction_is_warned_of() -> Result<()> {
    let recorder = Recorder::start();
    let server =
        needs("redis-server", Server::start(&["--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru"]).await);
    drop(RedisSingle::connect(&server.url()).await?);
    assert!(recorder.recorded().contains("allkeys-lru"), "{}", recorder.recorded());
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

#[test]
async fn an_error_has_the_words_of_the_server() -> Result<()> {
    let server = needs("redis-server", Server::start(&[]).await);
    let locks = RedisSingle::connect(&server.url()).await?;
    server.ask(&["CONFIG", "SET", "min-replicas-to-write", "1"]).await;
    let error = locks.try_lock("k").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    assert!(error.to_string().contains("NOREPLICAS Not enough good replicas to write"), "{error}");
    Ok(())
}
