//! Epochs: numbers that a server which forgets does not give again.

use std::time::Duration;

use leasehold_core::{Attempt, Backend, Claim, LockKey, Mode};
use leasehold_redis_reentrant::{LockerExt, RedisReentrant, Result};
use leasehold_testkit::redis::Server;
use leasehold_testkit::{needs, test};

const FENCE: &str = "{leasehold:afmc}:epoch";
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
