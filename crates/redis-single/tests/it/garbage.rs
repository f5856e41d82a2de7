//! A server that answers what no server should: a typed error, no panic, and never "nobody holds it".

use std::time::Duration;

use leasehold_redis_single::RedisSingle;
use leasehold_testkit::redis::{MALFORMED, malformed_answers_are_rejected};
use leasehold_testkit::test;

#[test]
async fn nothing_that_a_server_answers_makes_a_panic_a_guard_or_a_free_key() {
    malformed_answers_are_rejected(MALFORMED, async |url| {
        RedisSingle::builder().url(url).command_timeout(Duration::from_millis(500)).backend().await
    })
    .await;
}
