//! With the queue switched off, waiters in other lockers are served by signals. The tests start the servers they need; without `redis-server` they are ignored.

use std::time::Duration;

use leasehold_redis_single::{LockKey, LockOptions, LockerExt, RedisSingle, Result, Wait};
use leasehold_testkit::redis::{Answer, Server};
use leasehold_testkit::{eventually, needs, test};

/// Claims and releases, renewals too.
async fn steps(server: &Server) -> u64 {
    server.calls("evalsha").await
}

async fn connect(server: &Server) -> Result<RedisSingle> {
    RedisSingle::builder().url(server.url()).queue(false).connect().await
}

async fn listeners(server: &Server) -> usize {
    match server.ask(&["PUBSUB", "CHANNELS", "{leasehold:*}:freed"]).await {
        Answer::List(channels) => channels.len(),
        other => panic!("{other:?}"),
    }
}

#[test]
async fn a_waiter_is_served_by_the_signal_and_not_by_polling() -> Result<()> {
    let server = needs("redis-server", Server::start(&[]).await);
    let (here, there) = (connect(&server).await?, connect(&server).await?);
    let mut commands = Vec::new();
    for _ in 0..40 {
        let guard = here.lock("k").await?;
        let waiting = tokio::spawn({
            let there = there.clone();
            async move { there.lock("k").await }
        });
        eventually("it listens", async || listeners(&server).await == 1).await;
        let (before, published) = (steps(&server).await, server.calls("publish").await);
        let _ = guard.release().await?;
        let _ = waiting.await.unwrap()?.release().await?;
        commands.push(steps(&server).await - before);
        assert_eq!(server.calls("publish").await - published, 1, "nobody waits for the second");
        eventually("nobody listens", async || listeners(&server).await == 0).await;
    }
    // Two releases, the claim before listening was over, and the claim upon the signal; a poll of the safety net may
    // fall in between.
    commands.sort_unstable();
    assert!(commands[commands.len() / 2] <= 4, "{commands:?}");
    Ok(())
}

#[test]
async fn while_it_waits_a_listener_asks_far_less_than_a_poller() -> Result<()> {
    let server = needs("redis-server", Server::start(&[]).await);
    let (here, there) = (connect(&server).await?, connect(&server).await?);
    let _guard = here.lock("k").await?;
    let wait = LockOptions::new().wait(Wait::UpTo(Duration::from_secs(3)));
    let before = steps(&server).await;
    assert!(there.acquire(&LockKey::new("k")?, &wait).await?.is_none());
    let asked = steps(&server).await - before;
    // A poller that backs off to 50 ms asks more than 60 times.
    assert!(asked <= 15, "{asked}");
    Ok(())
}

#[test]
async fn a_release_by_force_and_a_guard_that_is_dropped_are_signalled_too() -> Result<()> {
    use leasehold_redis_single::Admin;
    let server = needs("redis-server", Server::start(&[]).await);
    let (here, there) = (connect(&server).await?, connect(&server).await?);
    for by_force in [true, false] {
        let guard = here.lock("k").await?;
        let waiting = tokio::spawn({
            let there = there.clone();
            async move { there.lock("k").await }
        });
        eventually("it listens", async || listeners(&server).await == 1).await;
        let published = server.calls("publish").await;
        if by_force {
            here.force_release(guard.key()).await?;
        }
        drop(guard);
        let _ = waiting.await.unwrap()?.release().await?;
        assert!(server.calls("publish").await > published);
    }
    Ok(())
}

#[test]
async fn a_waiter_gets_the_key_although_all_signals_are_lost() -> Result<()> {
    let server = needs("redis-server", Server::start(&[]).await);
    let (here, there) = (connect(&server).await?, connect(&server).await?);
    let guard = here.lock("k").await?;
    let waiting = tokio::spawn(async move { there.lock("k").await });
    eventually("it listens", async || listeners(&server).await == 1).await;
    // As another program would that knows nothing of signals.
    server.ask(&["DEL", "{leasehold:k}:lock"]).await;
    assert!(waiting.await.unwrap()?.is_held());
    drop(guard);
    Ok(())
}
