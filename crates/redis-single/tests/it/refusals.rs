//! What cannot work is refused with a typed error, and nothing changes.

use std::time::Duration;

use leasehold_core::{Attempt, Backend, LeaseStatus};
use leasehold_redis_single::{Admin, ErrorKind, LockerExt, RedisSingle, Result};
use leasehold_testkit::redis::{
    Server, a_claim_that_is_refused_leaves_no_lock, a_grant_that_was_overwritten_is_lost_and_touches_no_other,
    a_release_by_force_is_told, a_release_by_force_signals_nobody, commands_are_taken_from_a_holder,
    what_somebody_else_wrote_is_named_and_left_alone,
};
use leasehold_testkit::{needs, test};

use crate::waiters::{FENCE, LINE, LOCK, claim, holds, key, leaves, listening};

#[test]
async fn bad_settings_are_refused_before_anything_is_sent() {
    for builder in [RedisSingle::builder(), RedisSingle::builder().url("redis://127.0.0.1:1").namespace("")] {
        let error = builder.connect().await.unwrap_err();
        assert_eq!((error.kind(), error.backend()), (ErrorKind::InvalidOptions, Some("redis-single")), "{error}");
    }
}

#[test]
async fn what_a_user_may_not_do_is_named_and_leaves_no_lock_behind() -> Result<()> {
    let server = needs("redis-server", Server::start(&[]).await);
    let connect = |url: String| async move { RedisSingle::connect(&url).await };
    a_claim_that_is_refused_leaves_no_lock(&server, &["-set", "-mget", "-exists", "-time"], connect).await?;
    commands_are_taken_from_a_holder(&server, &[("-pexpire", "(PEXPIRE)"), ("-get", "(GET)")], connect).await?;
    a_release_by_force_signals_nobody(&server, connect).await
}

#[test]
async fn what_is_not_ours_is_named_and_left_alone_and_a_grant_that_it_overwrites_is_lost() -> Result<()> {
    let server = needs("redis-server", Server::start(&[]).await);
    let locks = RedisSingle::connect(&server.url()).await?;
    let foreign = [&["LPUSH", LOCK, "theirs"][..], &["LPUSH", FENCE, "theirs"], &["HSET", LOCK, "a", "b"]];
    what_somebody_else_wrote_is_named_and_left_alone(&server, &locks, &foreign).await?;
    a_grant_that_was_overwritten_is_lost_and_touches_no_other(&server, &locks).await
}

#[test]
async fn a_hash_under_the_name_of_a_queue_that_is_not_one_is_left_alone() -> Result<()> {
    let server = needs("redis-server", Server::start(&[]).await);
    let store = listening(&server).await?;
    server.ask(&["HSET", LINE, "name", "bob", "age", "7"]).await;
    let before = server.ask(&["DUMP", LINE]).await;
    let holder = holds(&store).await?;
    assert!(matches!(store.try_acquire(&claim()).await?, Attempt::Busy { .. }));
    assert_eq!(leaves(&store, &holder).await?, LeaseStatus::Held);
    holds(&store).await?;
    assert_eq!(server.ask(&["DUMP", LINE]).await, before);
    assert_eq!(server.ask(&["PTTL", LINE]).await.number(), -1);
    Ok(())
}

#[test]
async fn an_entry_that_never_expires_is_an_error_until_it_is_released_by_force() -> Result<()> {
    let server = needs("redis-server", Server::start(&[]).await);
    let locks = RedisSingle::connect(&server.url()).await?;
    server.ask(&["SET", LOCK, "somebody's"]).await;
    let error = locks.lock_for("k", Duration::from_secs(60)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Backend);
    assert!(error.to_string().contains("`{leasehold:k}:lock` never expires"), "{error}");
    let freed = locks.force_release(&key()).await?;
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
async fn the_process_of_a_holder_is_told_of_a_release_by_force() -> Result<()> {
    let server = needs("redis-server", Server::start(&[]).await);
    for queue in [true, false] {
        let builder = RedisSingle::builder().url(server.url()).queue(queue);
        a_release_by_force_is_told(&builder.clone().backend().await?, &builder.backend().await?).await?;
    }
    Ok(())
}
