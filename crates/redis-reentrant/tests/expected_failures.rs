//! What is known to be wrong: each test says what ought to hold, and is listed in `expected-failures.txt` of the suite.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::time::Duration;

use leasehold_core::Clock;
use leasehold_redis::testing::Server;
use leasehold_redis_reentrant::{LockerExt, RedisReentrant, Result};
use leasehold_testkit::{ahead_of_the_clock, needs};

/// A counter that is ahead of the server's clock cannot be replaced by it.
async fn expected_failure_tokens_of_a_busy_key_grow_when_the_server_forgets_everything() -> Result<()> {
    let server = needs("redis-server", Server::start(&[]).await);
    let locks = RedisReentrant::connect(&server.url()).await?.session();
    let (clock, mut grants, mut newest) = (Clock::system(), 0, None);
    let begun = clock.now();
    let end = begun.plus(Duration::from_secs(2));
    while clock.now() < end {
        let guard = locks.lock("k").await?;
        (grants, newest) = (grants + 1, guard.fencing_token());
        guard.release().await?;
    }
    server.ask(&["FLUSHALL"]).await;
    let next = locks.lock("k").await?.fencing_token();
    ahead_of_the_clock(grants, clock.now().since(begun));
    assert!(next > newest, "{next:?} after {newest:?}");
    Ok(())
}

leasehold_testkit::main! {
    expected_failure_tokens_of_a_busy_key_grow_when_the_server_forgets_everything,
}
