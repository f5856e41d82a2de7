//! Script functions that leave together.
//!
//! While the server is stopped nothing comes back, so that it is certain what waits for what.

use std::pin::Pin;
use std::time::Duration;

use futures::future::{JoinAll, join_all};
use futures::poll;
use leasehold_core::{ErrorKind, Result};
use leasehold_redis::{ConnectionSettings, Notify, ScriptArguments, ScriptFunction, Source, Store, StoreOptions};
use leasehold_testkit::redis::{Server, user};
use leasehold_testkit::{eventually, needs, test};

/// Adds to a number, for one lock.
static ADD: ScriptFunction = ScriptFunction::new(
    "add",
    1,
    1,
    &["local function add(k, a) return 'sum ' .. redis.call('INCRBY', KEYS[k + 1], ARGV[a + 1]) end\n"],
);

const OPTIONS: StoreOptions = StoreOptions { functions: &[&ADD], notifications: Notify::Releases };

const MINUTE: Duration = Duration::from_secs(60);

/// So many commands leave before anything waits.
const ENOUGH: usize = 2;
/// So many functions are a full batch.
const FULL: usize = 32;
/// So many are not divided.
const FEW: usize = 4;

/// A store whose server knows the script, so that each batch is one command.
async fn open(url: String, command_timeout: Duration, group_commit: bool) -> Store {
    let settings = ConnectionSettings {
        source: Some(Source::Url(url)),
        command_timeout,
        group_commit,
        ..ConnectionSettings::default()
    };
    let store = Store::open(settings, OPTIONS).await.unwrap();
    store.load(&[]).await.unwrap();
    store
}

async fn add(store: &Store, name: impl ToString, within: Option<Duration>) -> Result<String> {
    let arguments = ScriptArguments::default().word(&name.to_string()).text(1);
    store.run_function(&ADD, arguments, within).await.map(|reply| reply.words().join(" "))
}

/// Begins them all, in their order, on a server that stands still. Returns when the driver has written what is in flight, so
/// that the server answers it at one time.
async fn begin<F: Future>(steps: impl Iterator<Item = F>) -> Pin<Box<JoinAll<F>>> {
    let mut all = Box::pin(join_all(steps));
    assert!(poll!(&mut all).is_pending());
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    all
}

#[test]
async fn what_comes_in_while_others_are_on_their_way_leaves_in_full_batches_or_even_shares() {
    let server = needs("redis-server", Server::start(&[]).await);
    for (waiting, batches) in [(1, 1), (FEW, 1), (10, 2), (FULL - 1, 2), (FULL, 1), (FULL + 1, 2), (3 * FULL + FEW, 4)]
    {
        let store = open(server.url(), MINUTE, true).await;
        let before = server.calls("evalsha").await;
        server.pause();
        let all = begin((0..ENOUGH + waiting).map(|number| add(&store, format!("k{number}"), None))).await;
        server.resume();
        let answers = all.await;
        assert!(answers.iter().all(|answer| matches!(answer.as_deref(), Ok("sum 1"))), "{answers:?}");
        assert_eq!(server.calls("evalsha").await - before, (ENOUGH + batches) as u64, "{waiting} waiting");
        server.ask(&["FLUSHALL"]).await;
        // Nothing is in flight any more, and nobody waits.
        for sum in 1..=3 {
            assert_eq!(add(&store, "one by one", None).await.unwrap(), format!("sum {sum}"));
        }
        assert_eq!(server.calls("evalsha").await - before, (ENOUGH + batches + 3) as u64, "{waiting} waiting");
    }
}

#[test]
async fn without_group_commit_each_leaves_alone() {
    let server = needs("redis-server", Server::start(&[]).await);
    let store = open(server.url(), MINUTE, false).await;
    let before = server.calls("evalsha").await;
    server.pause();
    let all = begin((0..100).map(|number| add(&store, number, None))).await;
    server.resume();
    assert!(all.await.iter().all(Result::is_ok));
    assert_eq!(server.calls("evalsha").await - before, 100);
}

#[test]
async fn one_that_fails_in_the_server_fails_alone() {
    let server = needs("redis-server", Server::start(&[]).await);
    let store = open(server.url(), MINUTE, true).await;
    server.ask(&["LPUSH", "list", "theirs"]).await;
    server.pause();
    let all = begin(["k", "k", "a", "list", "a"].map(|name| add(&store, name, None)).into_iter()).await;
    server.resume();
    let sums: Vec<_> = all.await.into_iter().map(Result::unwrap).collect();
    assert_eq!((&*sums[2], &*sums[4]), ("sum 1", "sum 2"));
    assert!(sums[3].starts_with("refused WRONGTYPE"), "{sums:?}");
}

#[test]
async fn a_key_that_is_denied_does_not_touch_the_others_of_its_batch() {
    let server = needs("redis-server", Server::start(&[]).await);
    let store = open(user(&server, &["resetkeys", "~k*"]).await, MINUTE, true).await;
    server.pause();
    let all = begin(["k0", "k1", "k2", "denied", "k4"].map(|name| add(&store, name, None)).into_iter()).await;
    server.resume();
    for (number, answer) in all.await.into_iter().enumerate() {
        match answer {
            Ok(sum) => assert!(number != 3 && sum == "sum 1", "{number}: {sum}"),
            Err(error) => assert!(number == 3 && error.kind() == ErrorKind::Backend, "{number}: {error}"),
        }
    }
    assert_eq!(add(&store, "denied", None).await.unwrap_err().kind(), ErrorKind::Backend);
    // One that was refused alone is not sent once more.
    server.ask(&["CONFIG", "RESETSTAT"]).await;
    server.pause();
    let all = begin(["k5", "k6", "denied"].map(|name| add(&store, name, None)).into_iter()).await;
    server.resume();
    assert_eq!(kinds(&all.await), [None, None, Some(ErrorKind::Backend)]);
    let errors = server.ask(&["INFO", "errorstats"]).await.text().to_owned();
    assert!(errors.contains("errorstat_NOPERM:count=1\r"), "{errors}");
}

fn kinds(answers: &[Result<String>]) -> Vec<Option<ErrorKind>> {
    answers.iter().map(|answer| answer.as_ref().err().map(leasehold_core::Error::kind)).collect()
}

#[test]
async fn one_that_is_given_less_time_fails_alone() {
    let server = needs("redis-server", Server::start(&[]).await);
    let store = open(server.url(), MINUTE, true).await;
    server.pause();
    let short = Some(Duration::from_millis(200));
    let mut patient = begin((0..6).map(|number| add(&store, number, if number == 1 { short } else { None }))).await;
    // Long enough for one that has its own limit, and nothing beside it.
    tokio::time::sleep(Duration::from_millis(400)).await;
    assert!(poll!(&mut patient).is_pending());
    server.resume();
    let mut expected = vec![None; 6];
    expected[1] = Some(ErrorKind::Indeterminate);
    assert_eq!(kinds(&patient.await), expected);
}

#[test]
async fn when_the_server_dies_or_falls_silent_everybody_is_told_and_it_goes_on() {
    for dies in [true, false] {
        let mut server = needs("redis-server", Server::start(&[]).await);
        let limit = Duration::from_secs(1);
        let store = open(server.url(), limit, true).await;
        server.pause();
        let all = begin((0..ENOUGH + FULL + 5).map(|number| add(&store, number, None))).await;
        if dies {
            server.kill();
        }
        let kinds = kinds(&tokio::time::timeout(MINUTE, all).await.expect("an end"));
        assert!(kinds[..ENOUGH].iter().all(|kind| *kind == Some(ErrorKind::Indeterminate)), "{kinds:?}");
        let is_transient = |kind| matches!(kind, Some(ErrorKind::Indeterminate | ErrorKind::Unavailable));
        assert!(kinds.into_iter().all(is_transient));
        if dies {
            server.restart().await;
        } else {
            server.resume();
        }
        eventually("it goes on", async || add(&store, "k", None).await.is_ok()).await;
    }
}

#[test]
async fn a_caller_that_leaves_takes_nobody_with_it() {
    let server = needs("redis-server", Server::start(&[]).await);
    // The first two are on their way, the others wait.
    for leaving in [0, 1, 2, 5, 9] {
        let store = open(server.url(), MINUTE, true).await;
        server.pause();
        let mut calls: Vec<_> = (0..10).map(|number| Box::pin(add(&store, number, None))).collect();
        for call in &mut calls {
            assert!(poll!(call).is_pending());
        }
        drop(calls.remove(leaving));
        server.resume();
        for call in calls {
            assert_eq!(call.await.unwrap(), "sum 1", "without {leaving}");
        }
        let done = if leaving < ENOUGH { 10 } else { 9 };
        eventually("what was sent is done", async || server.ask(&["DBSIZE"]).await.number() == done).await;
        server.ask(&["FLUSHALL"]).await;
    }
}
