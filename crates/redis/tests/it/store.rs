//! What a backend asks of a store, on real servers.

use std::iter::once;
use std::time::Duration;

use futures::FutureExt;
use leasehold_core::LeaseStatus::{Held, NotHeld};
use leasehold_core::{
    Attempt, Claim, Cursor, Error, ErrorKind, Health, LockKey, Mode, Notification, Notifications, OwnerId, Renewal,
    Result,
};
use leasehold_redis::{
    ConnectionSettings, Form, LOCK, Needs, Notify, Script, ScriptArguments, Source, Store, StoreOptions, examine,
    read_queued,
};
use leasehold_testkit::redis::{FakeRedis, Recorder, Server, user};
use leasehold_testkit::{eventually, needs, test};

use crate::stores::{self, RELEASES};

const GRANTS: StoreOptions =
    StoreOptions { functions: &[], notifications: Notify::Grants { part: LOCK, trusted: true } };

fn settings(server: &Server) -> ConnectionSettings {
    ConnectionSettings { source: Some(Source::Url(server.url())), ..ConnectionSettings::default() }
}

async fn open(server: &Server) -> Store {
    Store::open(settings(server), RELEASES).await.unwrap()
}

fn key(name: impl std::fmt::Display) -> LockKey {
    LockKey::new(name.to_string()).unwrap()
}

async fn replicate(replica: &Server, primary: &Server) {
    replica.ask(&["REPLICAOF", "127.0.0.1", &primary.port().to_string()]).await;
    let in_step = async || replica.ask(&["INFO", "replication"]).await.text().contains("master_link_status:up");
    eventually("it is in step", in_step).await;
    // What is written reaches it only after its first answer, within a second.
    primary.ask(&["SET", "written", ""]).await;
    eventually("it has that", async || replica.ask(&["DBSIZE"]).await.number() == 1).await;
    primary.ask(&["DEL", "written"]).await;
}

#[test]
async fn a_listing_has_pages_and_goes_on_only_where_a_page_ended() {
    let server = needs("redis-server", Server::start(&[]).await);
    let store = open(&server).await;
    let fill = "for i = 1, 3000 do redis.call('SET', '{leasehold:k' .. i .. '}:lock', '') end";
    server.ask(&["EVAL", fill, "0"]).await;
    let (page, next) = store.keys(LOCK, "", None).await.unwrap();
    assert!(page.is_sorted() && page.len() < 3000 && next.is_some(), "{} in one page", page.len());
    for odd in ["", "x", "0 0", " x 0", " 0 x", " -1 0"] {
        let error = store.keys(LOCK, "", Some(&Cursor(odd.into()))).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidOptions, "{odd:?}");
    }
    let error = store.keys(LOCK, "", Some(&Cursor(" 99999999999999999999 0".into()))).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Backend, "the server refuses it");
}

/// One that waited for the answer before it asks could be on another connection by then, which leads to another server.
#[test]
async fn a_grant_is_renewed_and_confirmed_without_a_pause_between() {
    static RENEW: Script = Script::new(&["return 'held'"]);
    let says_both_at_the_end = |words: &[&str]| match words[0] {
        "EVAL" => Some(String::new()),
        "WAIT" => Some(format!("{}:1\r\n", stores::bulk("held"))),
        _ => None,
    };
    let server = FakeRedis::start(says_both_at_the_end).await;
    let replicas = (1, Duration::from_millis(300));
    let asks = ConnectionSettings { replicas, ..ConnectionSettings::default() };
    let store = stores::open_with(&server.url(), &asks).await.unwrap();
    let grant = stores::grant("k");
    let renewal = || (&RENEW, store.renewal_of(&grant, Duration::from_secs(60)));
    let granted = store.confirm(&grant, renewal, || async { Ok(NotHeld) }.boxed()).await.unwrap();
    assert_eq!(granted, Attempt::Granted { epoch: grant.epoch });
}

#[test]
async fn a_grant_or_renewal_counts_when_enough_replicas_have_it() {
    static HELD: Script = Script::new(&["return 'held'"]);
    static GONE: Script = Script::new(&["return 'gone'"]);
    let server = needs("redis-server", Server::start(&["--repl-diskless-sync-delay", "0"]).await);
    let replica = needs("redis-server", Server::start(&[]).await);
    replicate(&replica, &server).await;
    let awaiting = async |replicas| {
        let replicas = (replicas, Duration::from_millis(300));
        Store::open(ConnectionSettings { replicas, ..settings(&server) }, RELEASES).await.unwrap()
    };
    let (none, one, two) = (awaiting(0).await, awaiting(1).await, awaiting(2).await);
    let (held, not_held) = (stores::grant("k"), stores::grant("l"));
    let given_back = || async { Ok(Held) }.boxed();
    let not_given_back = || async { Err(Error::new(ErrorKind::Unavailable, "release")) }.boxed();
    let renewed_by = |script| move || (script, ScriptArguments::default().text("k"));
    for store in [&none, &one] {
        let granted = store.confirm(&held, renewed_by(&HELD), not_given_back).await.unwrap();
        assert_eq!(granted, Attempt::Granted { epoch: Some(7) });
    }
    let short = two.confirm(&held, renewed_by(&HELD), given_back).await.unwrap_err();
    assert_eq!(short.kind(), ErrorKind::Unavailable);
    assert!(short.to_string().contains("1 of 2 replicas confirmed the grant"), "{short}");
    let unknown = two.confirm(&held, renewed_by(&HELD), not_given_back).await.unwrap_err();
    assert_eq!(unknown.kind(), ErrorKind::Indeterminate);
    // The server changed between the grant and the question, and what this one has, its replicas have, too.
    let elsewhere = one.confirm(&held, renewed_by(&GONE), given_back).await.unwrap_err();
    assert_eq!(elsewhere.kind(), ErrorKind::Unavailable);
    assert!(elsewhere.to_string().contains("is not on the server that answers now"), "{elsewhere}");

    let renewed = async |store: &Store| {
        let statuses = vec![Ok(Held), Ok(NotHeld)];
        store.confirm_renewals(Duration::from_secs(2), [&held, &not_held].into_iter(), statuses).await
    };
    for store in [&none, &one] {
        let statuses: Vec<_> = renewed(store).await.into_iter().map(Result::unwrap).collect();
        assert_eq!(statuses, [Held, NotHeld]);
    }
    let waits = server.calls("wait").await;
    let statuses = renewed(&two).await;
    assert_eq!(server.calls("wait").await, waits + 1, "once for all");
    assert_eq!(statuses[0].as_ref().unwrap_err().kind(), ErrorKind::Unavailable);
    assert_eq!(*statuses[1].as_ref().unwrap(), NotHeld);
    // A quarter of the time that the renewal has, and no longer than is asked for.
    for (within, ms) in [(400, 100), (60_000, 300)] {
        let statuses = vec![Ok(Held)];
        let short = two.confirm_renewals(Duration::from_millis(within), once(&held), statuses).await;
        let told = short[0].as_ref().unwrap_err().to_string();
        assert!(told.contains(&format!("within {ms}ms")), "{told}");
    }
    let gone = vec![Ok(NotHeld)];
    let waits = server.calls("wait").await;
    two.confirm_renewals(Duration::from_secs(2), once(&held), gone).await;
    assert_eq!(server.calls("wait").await, waits, "nobody is asked about what is gone");

    let lease = Duration::from_secs(60);
    let in_doubt = two.take_over(&HELD, &HELD, &held, held.owner, lease).await.unwrap_err();
    assert_eq!(in_doubt.kind(), ErrorKind::Indeterminate);
    assert_eq!(one.take_over(&HELD, &HELD, &held, held.owner, lease).await.unwrap(), Held);
    let renewals = [Renewal { grant: held, ttl: lease }];
    let renewed = two.renew(&HELD, &renewals, lease).await;
    assert_eq!(renewed[0].as_ref().unwrap_err().kind(), ErrorKind::Unavailable);
    assert_eq!(*one.renew(&HELD, &renewals, lease).await[0].as_ref().unwrap(), Held);
}

/// What is warned of, and what `examine` finds.
async fn warned(server: &Server) -> (String, Vec<&'static str>) {
    let recorder = Recorder::start();
    open(server).await.close().await;
    (recorder.recorded(), found(&server.url()).await)
}

/// The findings that are not well, but for persistence: these servers have none.
async fn found(url: &str) -> Vec<&'static str> {
    static NEEDS: Needs = Needs { commands: &["get"], spare: &["info"], parts: &[("lock", Form::Entry)] };
    let found = examine(url, &NEEDS).await.unwrap();
    let bad = found.iter().filter(|finding| finding.health != Health::Well && finding.id != "persistence");
    bad.map(|finding| finding.id).collect()
}

#[test]
async fn a_server_that_may_lose_locks_is_warned_of() {
    let server = needs("redis-server", Server::start(&["--repl-diskless-sync-delay", "0"]).await);
    let (log, told) = warned(&server).await;
    assert!(!log.contains("evicts") && !log.contains("fail-over") && told.is_empty(), "{log} {told:?}");
    server.ask(&["CONFIG", "SET", "maxmemory", "1gb"]).await;
    assert!(warned(&server).await.1.is_empty(), "with a policy that deletes nothing");
    server.ask(&["CONFIG", "SET", "maxmemory-policy", "allkeys-lru"]).await;
    let (log, told) = warned(&server).await;
    assert!(log.contains("evicts entries") && log.contains("policy=\"allkeys-lru\""), "{log}");
    assert_eq!(told, ["eviction-policy"]);
    let recorder = Recorder::start();
    stores::open(&server.url()).await.unwrap().warn_of_eviction().await;
    assert!(recorder.recorded().contains("evicts entries"), "{}", recorder.recorded());
    server.ask(&["CONFIG", "SET", "maxmemory", "0"]).await;

    let replica = needs("redis-server", Server::start(&[]).await);
    replicate(&replica, &server).await;
    let (log, told) = warned(&server).await;
    assert!(log.contains("a fail-over can put two holders side by side") && told == ["replicas"], "{log} {told:?}");
    let recorder = Recorder::start();
    let confirmed = ConnectionSettings { replicas: (1, Duration::from_secs(1)), ..settings(&server) };
    drop(Store::open(confirmed, RELEASES).await.unwrap());
    assert!(!recorder.recorded().contains("fail-over"), "{}", recorder.recorded());
    let error = Store::open(settings(&replica), RELEASES).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(error.to_string().contains(&format!("connect to the primary, 127.0.0.1:{}", server.port())), "{error}");
    assert_eq!(found(&replica.url()).await[0], "replica");
    replica.ask(&["CONFIG", "SET", "replica-read-only", "no"]).await;
    let (log, told) = warned(&replica).await;
    assert!(log.contains("is a replica that takes writes"), "{log}");
    assert_eq!(told, ["replica"]);

    let url = user(&server, &["-info"]).await;
    assert_eq!(found(&url).await, ["settings", "privilege"]);
    let recorder = Recorder::start();
    let blind = ConnectionSettings { source: Some(Source::Url(url)), ..ConnectionSettings::default() };
    drop(Store::open(blind, RELEASES).await.unwrap());
    let log = recorder.recorded();
    assert!(log.contains("whether the server evicts entries cannot be read"), "{log}");
}

#[test]
async fn a_grant_comes_in_at_the_inbox_and_a_store_that_is_closed_has_none() {
    let server = needs("redis-server", Server::start(&[]).await);
    let store = Store::open(settings(&server), GRANTS).await.unwrap();
    let (claim, owner) =
        (Claim { waits: true, ..Claim::new(&key("k"), Mode::Exclusive, Duration::from_secs(9)) }, OwnerId::random());
    assert_eq!(store.inbox_of(&claim), "-");
    let mut listens = store.subscribe(&key("k")).await.unwrap();
    let inbox = store.inbox_of(&claim);
    assert_eq!((store.inbox(), inbox.starts_with("!{leasehold:}:inbox:")), (Some(inbox.clone()), true), "{inbox}");
    assert_eq!(store.inbox_of(&Claim { waits: false, ..claim.clone() }), "");
    let grant = format!("{} 7 {}", owner.to_hex(), store.names(&key("k")).part(LOCK));
    assert_eq!(server.ask(&["PUBLISH", &inbox[1..], &grant]).await.number(), 1);
    assert_eq!(listens.next().await, Notification::Granted { owner, epoch: Some(7) });

    let ms = Duration::from_millis;
    for (ttl, left, numbers, inbox, epoch_of_holder, latest, retry_in, lease) in [
        (ms(9000), "600", "7 9", &*inbox, Some(7), 9, ms(601), ms(3000)),
        (ms(2000), "5000", "- -7", "-", None, 0, ms(2000) / 3, ms(2000)),
        (ms(30), "5000", "7 9", "-", Some(7), 9, ms(50), ms(30)),
        (ms(30), "10", "7 9", "-", Some(7), 9, ms(11), ms(30)),
    ] {
        let (claim, latest_epoch, notifies) = (Claim { ttl, ..claim.clone() }, Some(latest), inbox != "-");
        let expected = Attempt::Queued { epoch_of_holder, latest_epoch, retry_in, notifies, lease };
        assert_eq!(read_queued(&claim, left, numbers, inbox), Some(expected), "{ttl:?} {left} {numbers}");
    }
    store.close().await;
    assert_eq!(store.inbox(), None);
    assert_eq!(store.get("k").await.unwrap_err().kind(), ErrorKind::Closed);
    eventually("nobody is connected", async || server.clients().await == 0).await;
}
