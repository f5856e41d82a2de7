//! Epochs: numbers that a server which forgets does not give again.

use std::time::Duration;

use leasehold_core::{Attempt, Backend, Claim, LockKey, Mode};
use leasehold_redis_reentrant::{LockerExt, RedisReentrant, Result};
use leasehold_testkit::redis::{Server, batches_give_counters_their_whole_time, grows_old, is_kept_for};
use leasehold_testkit::{needs, test};

const FENCE: &str = "{leasehold:k}:fence";
const LOCK: &str = "{leasehold:k}:lock";

#[test]
async fn a_counter_that_is_ahead_of_the_clock_waits_for_it() -> Result<()> {
    let server = needs("redis-server", Server::start(&[]).await);
    let store = RedisReentrant::builder().url(server.url()).backend().await?;
    let ahead = "local t = redis.call('TIME') \
                 redis.call('SET', KEYS[1], string.format('epoch %d', t[1] * 16000 + t[2] * 2 / 125 + 12000))";
    server.ask(&["EVAL", ahead, "1", FENCE]).await;
    let counter = server.ask(&["GET", FENCE]).await;
    let claim = Claim::new(&LockKey::new("k")?, Mode::Exclusive, Duration::from_secs(30));
    assert_eq!(store.try_acquire(&claim).await?, Attempt::AHEAD_OF_THE_CLOCK);
    assert_eq!((server.ask(&["GET", FENCE]).await, server.ask(&["EXISTS", LOCK]).await.number()), (counter.clone(), 0));
    let session = RedisReentrant::connect(&server.url()).await?.session();
    let epoch = session.lock("k").await?.fencing_token().unwrap().epoch();
    assert!(Some(epoch) > counter.text().strip_prefix("epoch ").and_then(|ahead| ahead.parse().ok()));
    Ok(())
}

/// A clock that is set back would otherwise give tokens again, which only the counter prevents.
#[test]
async fn a_counter_has_its_whole_retention_after_each_grant_and_nothing_shortens_it() -> Result<()> {
    const HOUR: Duration = Duration::from_secs(3600);
    let server = needs("redis-server", Server::start(&[]).await);
    let session = RedisReentrant::builder().url(server.url()).fence_retention(HOUR).connect().await?.session();
    for grant in 1..=3 {
        let guard = session.lock("k").await?;
        assert!(is_kept_for(&server, FENCE, HOUR).await, "grant {grant}");
        let level = session.lock("k").await?;
        level.renew().await?;
        assert!(is_kept_for(&server, FENCE, HOUR).await, "level and renewal {grant}");
        level.release().await.map(drop)?;
        guard.release().await.map(drop)?;
        assert!(is_kept_for(&server, FENCE, HOUR).await, "release {grant}");
        grows_old(&server, FENCE).await;
    }
    batches_give_counters_their_whole_time(&server, &session, HOUR).await
}
