//! A server that answers what no server should: a typed error, no panic, and never "nobody holds it".

use std::time::Duration;

use leasehold_core::Backend;
use leasehold_redis_single::{ErrorKind, RedisSingle};
use leasehold_testkit::redis::{FakeRedis, MALFORMED, malformed_answers_are_rejected};
use leasehold_testkit::test;

#[test]
async fn nothing_that_a_server_answers_makes_a_panic_a_guard_or_a_free_key() {
    malformed_answers_are_rejected(MALFORMED, async |url| {
        RedisSingle::builder().url(url).command_timeout(Duration::from_millis(500)).backend().await
    })
    .await;
}

#[test]
async fn a_list_with_an_answer_too_few_or_too_many_leaves_nothing_out() {
    for answers in ["*0\r\n", "*1\r\n*1\r\n$4\r\nfree\r\n", "*3\r\n*1\r\n+free\r\n*1\r\n+free\r\n*1\r\n+free\r\n"] {
        let fake = FakeRedis::start(move |words| match words {
            ["SCAN", ..] => "*2\r\n$1\r\n0\r\n*2\r\n+{leasehold:a}:lock\r\n+{leasehold:b}:lock\r\n".into(),
            ["EVALSHA", ..] => answers.into(),
            _ => FakeRedis::greeting(words).unwrap_or_else(|| "+OK\r\n".into()),
        })
        .await;
        let store = RedisSingle::builder().url(fake.url()).backend().await.expect("a connection");
        let error = store.list("", None).await.expect_err(answers);
        assert_eq!(error.kind(), ErrorKind::Backend);
    }
}
