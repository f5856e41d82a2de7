use std::time::Duration;

use futures::future::join_all;
use leasehold_core::{Backend, Claim, ErrorKind, LeaseStatus, LockKey, Mode, Renewal, Result};

use super::fake_redis::FakeRedis;

/// Answers to a script, none of which a script of any backend gives.
pub const MALFORMED: [&str; 48] = [
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
    "+busy x\r\n",
    "+busy x y\r\n",
    "+busy 7 y\r\n",
    "+busy -7 0123456789abcdef\r\n",
    "+busy 99999999999999999999\r\n",
    "+queued x y z\r\n",
    "+queued 7 7\r\n",
    "+queued 7 x 7\r\n",
    "+queued 7 - x\r\n",
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
    "*1\r\n*3\r\n+held\r\n+x\r\n+y\r\n",
    "*1\r\n*4\r\n+held\r\n+x\r\n+{}\r\n+7\r\n",
    "*1\r\n*4\r\n+held\r\n+7\r\n+{}\r\n+y\r\n",
    "*1\r\n*0\r\n",
    "*1\r\n*1\r\n*1\r\n*0\r\n",
    "*1\r\n*1\r\n$3\r\nhel\r\n",
    "*2\r\n*1\r\n$4\r\nfree\r\n*1\r\n$4\r\nfree\r\n",
    "*3\r\n+helder\r\n+held\r\n+held\r\n",
    "*1\r\n-ERR inside\r\n",
    "nonsense\r\n",
    "_\r\n%1\r\n",
];

impl FakeRedis {
    /// Starts one that answers with these bytes whatever is asked about locks, but for what has another answer.
    pub async fn malformed_but(
        answer: &'static str,
        other: impl Fn(&[&str]) -> Option<Vec<u8>> + Send + Sync + 'static,
    ) -> Self {
        let usual = move |words: &[&str]| match words {
            ["EVALSHA" | "EVAL" | "SCAN" | "GET" | "SUBSCRIBE", ..] => answer.into(),
            _ => Self::greeting(words).unwrap_or_else(|| "+OK\r\n".into()),
        };
        Self::start(move |words| Some(other(words).unwrap_or_else(|| usual(words)))).await
    }
}

/// Asks a backend everything, of servers each of which answers scripts with one of these. `connect` gets its URL.
pub async fn malformed_answers_are_rejected<B: Backend>(
    answers: impl IntoIterator<Item = &'static str>,
    connect: impl AsyncFn(String) -> Result<B>,
) {
    let connect = &connect;
    join_all(answers.into_iter().map(|answer| async move {
        let fake = FakeRedis::malformed_but(answer, |_| None).await;
        rejects_malformed_answers(&connect(fake.url()).await.expect("a connection"), answer).await;
    }))
    .await;
}

/// Asks a backend everything, whose servers answer scripts with this: none of it is taken for an answer, and each is told by a typed
/// error.
pub async fn rejects_malformed_answers(store: &impl Backend, answer: &str) {
    let key = LockKey::new("k").expect("a good key");
    let claim = Claim { waits: true, ..Claim::new(&key, Mode::Exclusive, Duration::from_secs(30)) };

    let attempt = store.try_acquire(&claim).await;
    assert!(attempt.is_err(), "{answer:?}: {attempt:?}");
    let renewal = Renewal { grant: claim.grant(Some(7)), ttl: claim.ttl };
    let renewed = store.renew(&[renewal.clone(), renewal], Duration::from_secs(1)).await;
    assert_eq!(renewed.len(), 2, "{answer:?}: {renewed:?}");
    assert!(renewed.iter().all(Result::is_err), "{answer:?}: {renewed:?}");
    let released = store.release(&claim.grant(Some(7))).await;
    assert!(!matches!(released, Ok(LeaseStatus::Held | LeaseStatus::ForceReleased)), "{answer:?}: {released:?}");
    let errors = [
        store.inspect(&key).await.err(),
        store.force_release(&key, None).await.err(),
        store.list("", None).await.err(),
        released.err(),
        attempt.err(),
    ];
    for error in errors {
        let error = error.unwrap_or_else(|| panic!("{answer:?} was taken for an answer"));
        let kinds = [ErrorKind::Backend, ErrorKind::Indeterminate, ErrorKind::Unavailable];
        assert!(kinds.contains(&error.kind()), "{answer:?}: {error}");
    }
    store.close().await;
}
