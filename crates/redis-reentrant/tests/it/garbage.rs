//! A server that answers what no server should: a typed error, no panic, and never "nobody holds it".

use std::time::Duration;

use leasehold_redis_reentrant::RedisReentrant;
use leasehold_testkit::redis::{MALFORMED, malformed_answers_are_rejected};
use leasehold_testkit::test;

/// Of sessions that are no digest, and of holders with a number or a lease that no script tells.
const OURS: [&str; 8] = [
    "+busy 7 \r\n",
    "+busy 7 0123456789abcde\r\n",
    "+busy 7 0123456789abcdex\r\n",
    "+busy 7 ééééééééé\r\n",
    "*1\r\n*4\r\n+held\r\n+\r\n+{}\r\n+7\r\n",
    "*1\r\n*4\r\n+held\r\n+9007199254740992\r\n+{}\r\n+7\r\n",
    "*1\r\n*4\r\n+held\r\n+7\r\n+{}\r\n+\r\n",
    "*1\r\n*4\r\n+held\r\n+7\r\n+{}\r\n+-2\r\n",
];

#[test]
async fn nothing_that_a_server_answers_makes_a_panic_a_guard_or_a_free_key() {
    malformed_answers_are_rejected(MALFORMED.into_iter().chain(OURS), async |url| {
        RedisReentrant::builder().url(url).command_timeout(Duration::from_millis(500)).backend().await
    })
    .await;
}
