//! A server that answers what no server should: a typed error, no panic, and never "nobody holds it".

use leasehold_testkit::test;
use std::time::Duration;

use leasehold_core::Backend;
use leasehold_redis_reentrant::{ErrorKind, RedisReentrant};
use leasehold_testkit::redis::{FakeRedis, MALFORMED, rejects_malformed_answers};
use tokio::task::JoinSet;

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
    let mut asking = JoinSet::new();
    for odd in MALFORMED.into_iter().chain(OURS) {
        asking.spawn(ask_all(odd));
    }
    asking.join_all().await;
}

async fn ask_all(odd: &'static str) {
    let fake = FakeRedis::malformed(odd).await;
    let store = RedisReentrant::builder().url(fake.url()).command_timeout(Duration::from_millis(500));
    rejects_malformed_answers(&store.backend().await.expect("a connection"), odd).await;
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
        let store = RedisReentrant::builder().url(fake.url()).backend().await.expect("a connection");
        let error = store.list("", None).await.expect_err(answers);
        assert_eq!(error.kind(), ErrorKind::Backend);
    }
}
