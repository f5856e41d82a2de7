//! A server knows the password that it was told. Whatever it says, nobody else learns it from what we tell.

use std::time::Duration;

use leasehold_redis_single::{Admin, LockKey, LockOptions, LockerExt, RedisSingle, Wait};
use leasehold_testkit::redis::{FakeRedis, Recorder};
use leasehold_testkit::{shown, test};
use tokio::task::JoinSet;

const CANARY: &str = "hunter2/canary";
/// In the URL, and as a server might spell it.
const ENCODED: &str = "hunter2%2Fcanary";

fn assert_hidden(told: &str) {
    assert!(!told.contains(CANARY) && !told.contains(ENCODED), "{told}");
}

fn url(fake: &FakeRedis) -> String {
    fake.url().replace("redis://", &format!("redis://:{ENCODED}@"))
}

#[test]
async fn a_server_that_repeats_the_password_when_it_refuses_it_is_not_quoted_with_it() {
    for said in ["WRONGPASS it is not", "ERR unknown command `AUTH`, with args beginning with:", "whatever"] {
        for spelling in [CANARY, ENCODED, "hunter2%2fcanary"] {
            let answer = format!("-{said} {spelling}\r\n");
            let fake = FakeRedis::start(move |_| Some(answer.clone())).await;
            let told = shown(&RedisSingle::connect(&url(&fake)).await.expect_err("it was refused"));
            assert_hidden(&told.replace("%2f", "%2F"));
            let words = said.split(',').next().unwrap_or_default();
            assert!(told.contains("withheld") || told.contains(words), "{told}");
            let auth = fake.received().into_iter().find(|words| words[0] == "AUTH").expect("a password was sent");
            assert_eq!(auth.last().map(String::as_str), Some(CANARY));
        }
    }
}

#[test]
async fn a_server_that_repeats_the_password_in_any_answer_is_not_quoted_with_it() {
    let recorder = Recorder::start();
    let mut asking = JoinSet::new();
    for answer in [
        format!("-ERR {CANARY}\r\n"),
        format!("-LOADING {CANARY}\r\n"),
        format!("-READONLY {ENCODED}\r\n"),
        format!("+foreign {CANARY} {CANARY}\r\n"),
        format!("*3\r\n+foreign\r\n+{CANARY}\r\n+{ENCODED}\r\n"),
        format!("+endless {CANARY}\r\n"),
        format!("+spent {CANARY}\r\n"),
        format!("+refused ERR {CANARY}\r\n"),
        format!("+refused -MISCONF {ENCODED}\r\n"),
        format!("+{CANARY}\r\n"),
    ] {
        asking.spawn(ask_all(answer));
    }
    let mut told = asking.join_all().await.concat();
    let logged = recorder.recorded();
    assert!(logged.contains("evicts") && logged.contains("connect to the primary"), "nothing was recorded");
    // The driver's debug log quotes servers, and is not ours to change.
    told.extend(logged.lines().filter(|line| !line.starts_with("fred-")).map(str::to_owned));
    for text in told {
        assert_hidden(&text);
    }
}

/// All that is told when a server answers everything with this.
async fn ask_all(answer: String) -> Vec<String> {
    let fake = FakeRedis::start(move |words| {
        let info = match words {
            ["INFO", "memory"] => format!("maxmemory:1\r\nmaxmemory_policy:{CANARY}\r\n"),
            ["INFO", "replication"] => format!("role:slave\r\nmaster_host:{CANARY}\r\nslave_read_only:0\r\n"),
            ["EVALSHA" | "EVAL" | "SCAN" | "GET" | "SUBSCRIBE", ..] => return Some(answer.clone()),
            _ => return None,
        };
        Some(format!("${}\r\n{info}\r\n", info.len()))
    })
    .await;
    let locks = RedisSingle::connect(&url(&fake)).await.expect("a connection");
    let key = LockKey::new("k").expect("a good key");
    let patient = LockOptions::new().wait(Wait::UpTo(Duration::from_millis(300)));
    let outcomes = [
        locks.acquire(&key, &patient).await.err(),
        locks.inspect(&key).await.err(),
        locks.list("", None).await.err(),
        locks.force_release(&key).await.err(),
    ];
    let [Some(_), Some(_), Some(_), Some(_)] = &outcomes else { panic!("{outcomes:?}") };
    let told = outcomes.iter().flatten().map(shown).chain([format!("{locks:?}")]).collect();
    locks.close().await;
    told
}
