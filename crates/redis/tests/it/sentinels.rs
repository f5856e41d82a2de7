//! A primary that Sentinels name, all of them played by the test, so that each says what it is to say.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use leasehold_core::{ErrorKind, LockKey, Notifications, Result};
use leasehold_redis::{ConnectionSettings, Source, Store};
use leasehold_testkit::redis::{FakeRedis, Recorder};
use leasehold_testkit::{Deadline, PATIENCE, eventually, shown, test};
use tokio::runtime::Builder;

use crate::stores::{self, RELEASES, bulk, heard};

/// Whom a Sentinel names, and in which epoch. Port 0: nobody; port 1: it refuses to say.
type Says = Arc<Mutex<(u64, u16)>>;

fn says(epoch: u64, primary: &FakeRedis) -> Says {
    Arc::new(Mutex::new((epoch, primary.port())))
}

const NOPERM: &str = "-NOPERM you may not\r\n";

/// Refuses what has one of these words.
async fn sentinel(says: &Says, refuses: &'static [&'static str]) -> FakeRedis {
    let says = Arc::clone(says);
    FakeRedis::start(move |words| {
        let (epoch, port) = *says.lock().unwrap();
        Some(match *words {
            _ if words.iter().any(|word| refuses.contains(word)) => NOPERM.to_owned(),
            ["SENTINEL", ..] if port == 1 => NOPERM.to_owned(),
            ["HELLO", ..] => format!("%1\r\n{}{}", bulk("server"), bulk("redis")),
            ["SUBSCRIBE", ref channels @ ..] => {
                let confirmed = |channel: &&str| format!(">3\r\n{}{}:1\r\n", bulk("subscribe"), bulk(channel));
                channels.iter().map(confirmed).collect()
            }
            ["SENTINEL", "GET-MASTER-ADDR-BY-NAME", "main"] if port == 0 => "_\r\n".to_owned(),
            ["SENTINEL", "GET-MASTER-ADDR-BY-NAME", "main"] => {
                format!("*2\r\n{}{}", bulk("127.0.0.1"), bulk(&port.to_string()))
            }
            ["SENTINEL", "MASTER", "main"] => {
                format!("%2\r\n{}{}{}{}", bulk("flags"), bulk("master"), bulk("config-epoch"), bulk(&epoch.to_string()))
            }
            _ => return None,
        })
    })
    .await
}

/// Answers with its name, but for what has `another` answer.
async fn server(
    name: &'static str,
    role: &'static str,
    another: impl Fn(&[&str]) -> Option<String> + Send + Sync + 'static,
) -> FakeRedis {
    FakeRedis::start(move |words| {
        another(words).or_else(|| match *words {
            ["ROLE"] => Some(format!("*1\r\n{}", bulk(role))),
            ["EVALSHA", ..] => Some(format!("*2\r\n{}{}", bulk("heard"), bulk(name))),
            _ => None,
        })
    })
    .await
}

async fn primary(name: &'static str) -> FakeRedis {
    server(name, "master", |_| None).await
}

async fn replica(name: &'static str) -> FakeRedis {
    server(name, "slave", |_| None).await
}

fn url(sentinels: &[&FakeRedis]) -> String {
    let node = |sentinel: &&FakeRedis| format!("&node=127.0.0.1:{}", sentinel.port());
    let nodes: String = sentinels[1..].iter().map(node).collect();
    format!("redis-sentinel://127.0.0.1:{}?sentinelServiceName=main{nodes}", sentinels[0].port())
}

async fn open(sentinels: &[&FakeRedis]) -> Result<Store> {
    stores::open(&url(sentinels)).await
}

/// Who answers.
async fn asked(store: &Store) -> Result<String> {
    heard(store, "k").await
}

async fn is_asked(store: &Store, name: &str) {
    eventually("it is asked", async || asked(store).await.is_ok_and(|heard| heard == name)).await;
}

#[test]
async fn the_primary_that_is_named_is_asked_and_its_successor_after_it() {
    let (one, two) = (primary("one").await, primary("two").await);
    let says = says(1, &one);
    let (a, b, c) = (sentinel(&says, &[]).await, sentinel(&says, &[]).await, sentinel(&says, &[]).await);
    let store = open(&[&a, &b, &c]).await.unwrap();
    assert_eq!(asked(&store).await.unwrap(), "one");
    assert!(format!("{store:?}").contains("connected: true"), "{store:?}");
    *says.lock().unwrap() = (2, two.port());
    is_asked(&store, "two").await;
    // Back again: the newest word counts, and not the first.
    *says.lock().unwrap() = (3, one.port());
    is_asked(&store, "one").await;
    store.close().await;
    assert_eq!(asked(&store).await.unwrap_err().kind(), ErrorKind::Closed);
    let questions = || [&a, &b, &c].map(|node| node.received().len());
    let rests = async || {
        let before = questions();
        tokio::time::sleep(Duration::from_millis(1500)).await;
        before == questions()
    };
    eventually("nobody is asked any more", rests).await;
}

#[test]
async fn a_sentinel_that_refuses_to_publish_or_to_tell_the_epoch_is_asked_all_the_same() {
    for refuses in [&["SUBSCRIBE"][..], &["MASTER"], &["SUBSCRIBE", "MASTER"]] {
        let (one, two) = (primary("one").await, primary("two").await);
        let says = says(1, &one);
        let only = sentinel(&says, refuses).await;
        let store = open(&[&only]).await.unwrap();
        is_asked(&store, "one").await;
        *says.lock().unwrap() = (2, two.port());
        is_asked(&store, "two").await;
        let listens = only.received().iter().filter(|words| words[0] == "SUBSCRIBE").count();
        assert_eq!(listens, 1, "{refuses:?}");
    }
}

#[test]
async fn without_a_primary_that_says_that_it_is_one_there_is_no_connection() {
    let replica = replica("one").await;
    let only = sentinel(&says(1, &replica), &[]).await;
    let error = open(&[&only]).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(shown(&error).contains("is no primary"), "{}", shown(&error));
    assert!(!replica.received().iter().any(|words| words[0] == "EVALSHA"));

    let nobody = sentinel(&Arc::new(Mutex::new((1, 0))), &[]).await;
    let error = open(&[&nobody]).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(shown(&error).contains("knows no such service"), "{}", shown(&error));

    let refuses = sentinel(&says(1, &replica), &["SENTINEL"]).await;
    let error = open(&[&refuses]).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Backend, "{}", shown(&error));
}

#[test]
async fn one_sentinel_that_answers_is_enough_and_a_primary_that_comes_late_is_found() {
    let (one, two) = (primary("one").await, replica("two").await);
    let says = says(1, &one);
    let (a, refuses) = (sentinel(&says, &[]).await, sentinel(&says, &["SENTINEL"]).await);
    let log = Recorder::start();
    let store = open(&[&refuses, &a]).await.unwrap();
    assert_eq!(asked(&store).await.unwrap(), "one");
    // It is named, and does not say yet that it is the primary: until then nobody is asked.
    *says.lock().unwrap() = (2, two.port());
    eventually("nobody is asked", async || {
        asked(&store).await.is_err_and(|error| error.kind() == ErrorKind::Unavailable)
    })
    .await;
    assert!(format!("{store:?}").contains("connected: false"), "{store:?}");
    assert!(!two.received().iter().any(|words| words[0] == "EVALSHA"));
    *says.lock().unwrap() = (3, one.port());
    is_asked(&store, "one").await;
    let questions = || refuses.received().iter().filter(|words| words[0] == "SENTINEL").count();
    eventually("it is asked again and again", async || questions() > 6).await;
    assert_eq!(log.recorded().matches("a Sentinel refuses to say").count(), 1, "{}", log.recorded());
}

#[test]
async fn a_successor_that_shuts_out_and_sentinels_that_do_so_once_the_primary_is_gone_are_why_there_is_no_connection() {
    let refuses = Arc::new(AtomicBool::new(true));
    let shuts_out = Arc::clone(&refuses);
    let role =
        move |words: &[&str]| (words == ["ROLE"] && shuts_out.load(Ordering::Acquire)).then(|| NOPERM.to_owned());
    let (one, two) = (primary("one").await, server("two", "master", role).await);
    let says = says(1, &one);
    let only = sentinel(&says, &[]).await;
    let store = open(&[&only]).await.unwrap();
    let is_refused = async || asked(&store).await.is_err_and(|error| error.kind() == ErrorKind::Backend);
    *says.lock().unwrap() = (2, two.port());
    eventually("the successor refuses", is_refused).await;
    refuses.store(false, Ordering::Release);
    is_asked(&store, "two").await;
    *says.lock().unwrap() = (2, 1);
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(asked(&store).await.unwrap(), "two", "it is warned of, and counts for nothing");
    drop(two);
    eventually("the Sentinel refuses", is_refused).await;
}

#[test]
async fn what_the_sentinels_name_is_not_refused_as_a_replica() {
    let says_replica = |words: &[&str]| {
        (words == ["INFO", "replication"]).then(|| bulk("role:slave\r\nmaster_host:h\r\nmaster_port:7\r\n"))
    };
    let promoted = server("one", "master", says_replica).await;
    let only = sentinel(&says(1, &promoted), &[]).await;
    let settings = ConnectionSettings { source: Some(Source::Url(url(&[&only]))), ..ConnectionSettings::default() };
    assert!(Store::open(settings, RELEASES).await.is_ok());
    let settings = ConnectionSettings { source: Some(Source::Url(promoted.url())), ..ConnectionSettings::default() };
    assert_eq!(Store::open(settings, RELEASES).await.unwrap_err().kind(), ErrorKind::Unavailable);
}

#[test]
async fn an_answer_counts_for_nothing_when_another_has_become_primary_meanwhile() {
    let (hangs, came) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    let has_come = Arc::clone(&came);
    let comes = move |words: &[&str]| {
        has_come.fetch_or(words == ["ROLE"], Ordering::Release);
        None
    };
    let two = server("two", "master", comes).await;
    let held = Arc::clone(&hangs);
    let answers_late = move |words: &[&str]| {
        let deadline = Deadline::after(PATIENCE);
        let waits = || held.load(Ordering::Acquire) && !came.load(Ordering::Acquire) && !deadline.is_over();
        while words[0] == "EVALSHA" && waits() {
            std::thread::park_timeout(Duration::from_millis(5));
        }
        None
    };
    // On a runtime of its own, which it may block.
    let elsewhere = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let one = Box::leak(Box::new(elsewhere)).spawn(server("one", "master", answers_late)).await.unwrap();
    let says = says(1, &one);
    let only = sentinel(&says, &[]).await;
    let settings = ConnectionSettings { command_timeout: Duration::from_secs(60), ..ConnectionSettings::default() };
    let store = stores::open_with(&url(&[&only]), &settings).await.unwrap();
    assert_eq!(asked(&store).await.unwrap(), "one");
    hangs.store(true, Ordering::Release);
    *says.lock().unwrap() = (2, two.port());
    let error = asked(&store).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Indeterminate);
    assert!(shown(&error).contains("become the primary meanwhile"), "{}", shown(&error));
    assert_eq!(asked(&store).await.unwrap(), "two");
}

#[test]
async fn notifications_come_from_the_primary_and_end_with_it() {
    let publishes = |words: &[&str]| match *words {
        ["SUBSCRIBE", channel] => Some(format!("*3\r\n{}{}:1\r\n", bulk("subscribe"), bulk(channel))),
        ["PING"] => Some("*2\r\n$4\r\npong\r\n$0\r\n\r\n".to_owned()),
        _ => None,
    };
    let (one, two) = (server("one", "master", publishes).await, server("two", "master", publishes).await);
    let says = says(1, &one);
    let only = sentinel(&says, &[]).await;
    let store = open(&[&only]).await.unwrap();
    let key = LockKey::new("k").unwrap();
    let mut listens = store.subscribe(&key).await.unwrap();
    let hears = |node: &FakeRedis| node.received().iter().any(|words| words[0] == "SUBSCRIBE");
    assert!(hears(&one) && !hears(&two));
    *says.lock().unwrap() = (2, two.port());
    let ended = async { while listens.next().await != leasehold_core::Notification::Ended {} };
    tokio::time::timeout(PATIENCE, ended).await.expect("an end");
    is_asked(&store, "two").await;
    eventually("the next one is listened to", async || store.subscribe(&key).await.is_ok()).await;
    assert!(hears(&two));
}
