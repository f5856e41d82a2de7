//! A server that answers what no server should: a typed error, no panic, and never "nobody holds it".

use std::time::Duration;

use leasehold_core::{Backend, Claim, Held, Mode, Renewal};
use leasehold_redis::testing::Fake;
use leasehold_redis_single::{ErrorKind, LockKey, RedisSingle};
use tokio::task::JoinSet;

/// Answers to a script, none of which is one of its own.
const ODD: [&str; 36] = [
    "+\r\n",
    "+OK\r\n",
    "+granted\r\n",
    "+granted \r\n",
    "+granted x\r\n",
    "+granted -7\r\n",
    "+granted 9007199254740992\r\n",
    "+granted 18446744073709551615\r\n",
    "+granted 99999999999999999999\r\n",
    "+GRANTED 7\r\n",
    "+granted 7 7\r\n",
    "+queued\r\n",
    "+busy\r\n",
    "+helder x\r\n",
    "+free free\r\n",
    ":0\r\n",
    ":7\r\n",
    ":9223372036854775807\r\n",
    ":99999999999999999999\r\n",
    "$-1\r\n",
    "$0\r\n\r\n",
    "$-7\r\n",
    "$1\r\n\u{7}\r\n",
    "*-1\r\n",
    "*-7\r\n",
    "*0\r\n",
    "*1\r\n$-1\r\n",
    "*1\r\n:7\r\n",
    "*1\r\n*0\r\n",
    "*1\r\n*1\r\n*1\r\n*0\r\n",
    "*1\r\n*1\r\n$3\r\nhel\r\n",
    "*2\r\n*1\r\n$4\r\nfree\r\n*1\r\n$4\r\nfree\r\n",
    "*3\r\n+helder\r\n+held\r\n+held\r\n",
    "*1\r\n-ERR inside\r\n",
    "nonsense\r\n",
    "_\r\n%1\r\n",
];

#[tokio::test]
async fn nothing_that_a_server_answers_makes_a_panic_a_guard_or_a_free_key() {
    let mut asking = JoinSet::new();
    for odd in ODD {
        asking.spawn(ask_all(odd));
    }
    asking.join_all().await;
}

async fn ask_all(odd: &'static str) {
    let fake = Fake::start(move |words| match words {
        ["EVALSHA" | "EVAL" | "SCAN" | "GET" | "SUBSCRIBE", ..] => odd.into(),
        _ => Fake::greeting(words).unwrap_or_else(|| "+OK\r\n".into()),
    })
    .await;
    let store = RedisSingle::builder().url(fake.url()).command_timeout(Duration::from_millis(500));
    let store = store.backend().await.expect("a connection");
    let key = LockKey::new("k").expect("a good key");
    let claim = Claim { waits: true, ..Claim::new(&key, Mode::Exclusive, Duration::from_secs(30)) };

    let attempt = store.try_acquire(&claim).await;
    assert!(attempt.is_err(), "{odd:?}: {attempt:?}");
    let renewal = Renewal { grant: claim.grant(Some(7)), ttl: claim.ttl };
    let renewed = store.renew(&[renewal.clone(), renewal]).await;
    assert_eq!(renewed.len(), 2, "{odd:?}: {renewed:?}");
    assert!(renewed.iter().all(Result::is_err), "{odd:?}: {renewed:?}");
    let released = store.release(&claim.grant(Some(7))).await;
    assert!(!matches!(released, Ok(Held::Yes | Held::Forced)), "{odd:?}: {released:?}");
    let errors = [
        store.inspect(&key).await.err(),
        store.force_release(&key).await.err(),
        store.list("", None).await.err(),
        released.err(),
        attempt.err(),
    ];
    for error in errors {
        let error = error.unwrap_or_else(|| panic!("{odd:?} was taken for an answer"));
        let kinds = [ErrorKind::Backend, ErrorKind::Indeterminate, ErrorKind::Unavailable];
        assert!(kinds.contains(&error.kind()), "{odd:?}: {error}");
    }
    store.close().await;
}

#[tokio::test]
async fn a_list_with_an_answer_too_few_or_too_many_leaves_nothing_out() {
    for answers in ["*0\r\n", "*1\r\n*1\r\n$4\r\nfree\r\n", "*3\r\n*1\r\n+free\r\n*1\r\n+free\r\n*1\r\n+free\r\n"] {
        let fake = Fake::start(move |words| match words {
            ["SCAN", ..] => "*2\r\n$1\r\n0\r\n*2\r\n+{leasehold:a}:lock\r\n+{leasehold:b}:lock\r\n".into(),
            ["EVALSHA", ..] => answers.into(),
            _ => Fake::greeting(words).unwrap_or_else(|| "+OK\r\n".into()),
        })
        .await;
        let store = RedisSingle::builder().url(fake.url()).backend().await.expect("a connection");
        let error = store.list("", None).await.expect_err(answers);
        assert_eq!(error.kind(), ErrorKind::Backend);
    }
}
