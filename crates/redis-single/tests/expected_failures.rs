//! What is known to be wrong: each test says what ought to hold, and is listed in `expected-failures.txt` of the suite.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use leasehold_core::LocalHandoff;
use leasehold_redis_single::{LockerExt, RedisSingle, Result};
use leasehold_testkit::redis::Server;
use leasehold_testkit::{needs, tokens_grow_although_all_is_forgotten};

/// A counter that is ahead of the server's clock cannot be replaced by it.
async fn expected_failure_tokens_of_a_busy_key_grow_when_the_server_forgets_everything() -> Result<()> {
    let server = needs("redis-server", Server::start(&[]).await);
    let locks = RedisSingle::builder().url(server.url()).local_handoff(LocalHandoff::off()).connect().await?;
    let grant = async || {
        let guard = locks.lock("k").await?;
        let token = guard.fencing_token();
        guard.release().await.map(|_| token)
    };
    let forgets = async || {
        server.ask(&["FLUSHALL"]).await;
        locks.lock("k").await.map(|guard| guard.fencing_token())
    };
    tokens_grow_although_all_is_forgotten(grant, forgets).await
}

leasehold_testkit::main! {
    expected_failure_tokens_of_a_busy_key_grow_when_the_server_forgets_everything,
}
