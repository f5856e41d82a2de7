//! With the queue switched off, waiters in other lockers are served by signals. The tests start the servers they need; without `redis-server` they are ignored.

use leasehold_redis_single::{LockerExt, RedisSingle, Result};
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
