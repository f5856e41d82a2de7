//! What a backend asks of a store, on real servers, which the tests start; without `redis-server` they are ignored.

use std::collections::BTreeSet;
use std::ops::Range;
use std::time::Duration;

use leasehold_core::LeaseStatus::{ForceReleased, Held, NotHeld};
use leasehold_core::{
    Attempt, Claim, Cursor, Error, ErrorKind, GrantRef, Health, Holder, LockKey, Mode, Notification, Notifications,
    OwnerId, Renewal, Result,
};
use leasehold_redis::{
    ConnectionSettings, FORCED, Form, LOCK, Needs, Notify, Script, ScriptArguments, Source, Store, StoreOptions,
    examine, read_queued,
};
use leasehold_testkit::redis::{Recorder, Server};
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
}

#[test]
async fn a_script_for_many_locks_answers_for_each_in_their_order() {
    static NAMES: Script =
        Script::new(&["local names = {} for i, key in ipairs(KEYS) do names[i] = ARGV[1] .. key end return names"]);
    static HELD: Script = Script::new(&["return 'held'"]);
    let server = needs("redis-server", Server::start(&[]).await);
    let store = open(&server).await;
    let arguments = |range: Range<usize>| {
        let locks = range.clone().fold(ScriptArguments::default(), ScriptArguments::text);
        locks.text(format!("{}:", range.start))
    };
    // At most 250 at once.
    let answers = store.run_for_each(&NAMES, 600, &arguments, None).await;
    assert_eq!(answers.len(), 600);
    for (number, answer) in answers.into_iter().enumerate() {
        assert_eq!(answer.unwrap().words(), [format!("{}:{number}", number / 250 * 250)]);
    }
    assert_eq!(server.calls("evalsha").await, 3);
    let answers = store.run_for_each(&HELD, 251, &arguments, None).await;
    assert!(answers.len() == 251 && answers.iter().all(|answer| answer.as_ref().unwrap().words() == ["held"]));
    assert!(store.run_for_each(&HELD, 0, &arguments, None).await.is_empty());
    store.close().await;
    let answers = store.run_for_each(&HELD, 2, &arguments, None).await;
    assert!(
        answers.len() == 2 && answers.iter().all(|answer| answer.as_ref().unwrap_err().kind() == ErrorKind::Closed)
    );
}

/// All pages, each of them in order.
async fn listed(store: &Store, prefix: &str) -> Vec<LockKey> {
    let (mut found, mut after) = (Vec::new(), None);
    loop {
        let (page, next) = store.keys(LOCK, prefix, after.as_ref()).await.unwrap();
        assert!(page.is_sorted(), "{page:?}");
        found.extend(page);
        after = next;
        if after.is_none() {
            return found;
        }
    }
}

#[test]
async fn all_keys_of_a_namespace_are_listed_page_by_page_and_nothing_else() {
    let server = needs("redis-server", Server::start(&[]).await);
    let store = open(&server).await;
    let fill = "for i = 1, 3000 do redis.call('SET', '{leasehold:k' .. i .. '}:lock', '') \
                redis.call('SET', '{other:k' .. i .. '}:lock', '') end \
                redis.call('SET', '{leasehold:l}:lock', '') redis.call('SET', '{leasehold:l}:fence', '')";
    server.ask(&["EVAL", fill, "0"]).await;
    let all = listed(&store, "").await;
    assert_eq!(all.into_iter().collect::<BTreeSet<_>>().len(), 3001);
    let some: BTreeSet<_> = listed(&store, "k29").await.into_iter().collect();
    assert_eq!(some.len(), 111);
    assert_eq!(listed(&store, "l").await, [key("l")]);
    assert_eq!(listed(&store, "nobody").await, []);
    let (page, next) = store.keys(LOCK, "", None).await.unwrap();
    assert!(page.len() < 3000 && next.is_some(), "{} in one page", page.len());
    for odd in ["", "x", "0 0", " x 0", " 0 x", " -1 0"] {
        let error = store.keys(LOCK, "", Some(&Cursor(odd.into()))).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidOptions, "{odd:?}");
    }
    let error = store.keys(LOCK, "", Some(&Cursor(" 99999999999999999999 0".into()))).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Backend, "the server refuses it");
}

/// Prolongs what is there under the owner and the epoch that are given.
static RENEW: Script = Script::new(&[r"
local answers, all = {}, true
for owner, epoch, lease in string.gmatch(ARGV[1], '(%S+) (%S+) (%S+)') do
  local lock = KEYS[#answers + 1]
  local held = redis.call('GET', lock) == owner .. ' ' .. epoch and redis.call('PEXPIRE', lock, lease) == 1
  answers[#answers + 1], all = held and 'held' or 'gone', all and held
end
return all and 'held' or answers"]);

static TAKE_OVER: Script = Script::new(&[r"
if redis.call('GET', KEYS[1]) ~= ARGV[1] .. ' ' .. ARGV[2] then return 'gone' end
redis.call('SET', KEYS[1], ARGV[3] .. ' ' .. ARGV[2], 'PX', ARGV[4])
return 'held'"]);

fn grant(name: &str) -> GrantRef {
    Claim::new(&key(name), Mode::Exclusive, Duration::from_secs(60)).grant(Some(7))
}

async fn hold(server: &Server, store: &Store, grant: &GrantRef) {
    let entry = format!("{} 7", grant.owner.to_hex());
    server.ask(&["SET", &store.names(&grant.key).part(LOCK), &entry, "PX", "60000"]).await;
}

async fn lease(server: &Server, store: &Store, grant: &GrantRef) -> i64 {
    server.ask(&["PTTL", &store.names(&grant.key).part(LOCK)]).await.number()
}

#[test]
async fn what_is_held_is_renewed_and_of_the_rest_it_is_told_whether_it_was_forced() {
    let server = needs("redis-server", Server::start(&[]).await);
    let store = open(&server).await;
    let grants = ["held", "gone", "forced", "forced from others"].map(grant);
    hold(&server, &store, &grants[0]).await;
    let forced = format!("{} {}", OwnerId::random().to_hex(), grants[2].owner.to_hex());
    server.ask(&["SET", &store.names(&grants[2].key).part(FORCED), &forced]).await;
    server.ask(&["SET", &store.names(&grants[3].key).part(FORCED), &forced]).await;
    let (ttl, second) = (Duration::from_secs(600), Duration::from_secs(1));
    let renewals = grants.clone().map(|grant| Renewal { grant, ttl });
    let statuses: Vec<_> = store.renew(&RENEW, &renewals, second).await.into_iter().map(Result::unwrap).collect();
    assert_eq!(statuses, [Held, NotHeld, ForceReleased, NotHeld]);
    assert!(lease(&server, &store, &grants[0]).await > 500_000);
    let statuses: Vec<_> = store.renew(&RENEW, &renewals[..1], second).await.into_iter().map(Result::unwrap).collect();
    assert_eq!(statuses, [Held]);

    let (next, mut taken) = (OwnerId::random(), grants[0].clone());
    assert_eq!(store.take_over(&TAKE_OVER, &taken, next, ttl * 2).await.unwrap(), Held);
    assert!(lease(&server, &store, &taken).await > 1_000_000);
    assert_eq!(store.take_over(&TAKE_OVER, &taken, next, ttl).await.unwrap(), NotHeld);
    assert_eq!(store.take_over(&TAKE_OVER, &grants[2], next, ttl).await.unwrap(), ForceReleased);
    taken.owner = next;
    assert_eq!(
        store.take_over(&TAKE_OVER, &GrantRef { epoch: None, ..taken.clone() }, next, ttl).await.unwrap(),
        NotHeld
    );
    assert_eq!(store.take_over(&TAKE_OVER, &taken, OwnerId::random(), ttl).await.unwrap(), Held);
}

#[test]
async fn an_answer_that_no_script_gives_is_an_error_of_each_grant() {
    static ODD: Script = Script::new(&["return 'helder'"]);
    static REFUSED: Script = Script::new(&["return 'refused READONLY no'"]);
    let server = needs("redis-server", Server::start(&[]).await);
    let store = open(&server).await;
    let renewal = Renewal { grant: grant("k"), ttl: Duration::from_secs(60) };
    let within = Duration::from_secs(1);
    for (script, kind) in [(&ODD, ErrorKind::Backend), (&REFUSED, ErrorKind::Unavailable)] {
        let told = store.take_over(script, &renewal.grant, OwnerId::random(), within).await.unwrap_err();
        assert_eq!(told.kind(), kind, "{told}");
    }
    let renewed = store.renew(&ODD, &[renewal.clone(), renewal], within).await;
    assert!(renewed.len() == 2 && renewed.iter().all(Result::is_err), "{renewed:?}");
}

#[test]
async fn what_stands_in_the_way_is_named_with_what_to_do() {
    let server = needs("redis-server", Server::start(&[]).await);
    let store = open(&server).await;
    for (words, told) in [
        (&["foreign", "name", "list"][..], "`name` is not of this backend: list"),
        (&["foreign", "name", ""], "`name` is not of this backend: another type"),
        (&["endless", "name"], "`name` never expires"),
        (&["spent", "name"], "`name` is beyond the year 2248"),
        (&["refused", "OOM no"], "out of memory"),
        (&["-refused", "name"], "nobody understands"),
        (&[], "nobody understands"),
    ] {
        let error = store.script_error(words);
        assert!(error.to_string().contains(told), "{words:?}: {error}");
        let expected = if words.first() == Some(&"refused") { ErrorKind::Unavailable } else { ErrorKind::Backend };
        assert_eq!(error.kind(), expected, "{words:?}");
    }
    let refusal = store.refusal("odd");
    assert!(refusal.kind() == ErrorKind::Backend && refusal.to_string().contains("odd"), "{refusal}");
}

#[test]
async fn held_keys_are_shown_and_those_that_are_free_or_foreign_are_left_out() {
    static LOOK: Script = Script::new(&[r"
local seen = {}
for i, lock in ipairs(KEYS) do
  local text = redis.call('GET', lock)
  seen[i] = text == 'theirs' and { 'foreign', lock } or text and { 'held', text } or { 'free' }
end
return seen"]);
    let server = needs("redis-server", Server::start(&[]).await);
    let store = open(&server).await;
    for (name, text) in [("a", "ada"), ("b", "theirs"), ("c", "bob")] {
        server.ask(&["SET", &store.names(&key(name)).part(LOCK), text]).await;
    }
    let read = |words: &[&str]| match words {
        ["held", label] => {
            let mut holder = Holder::new(Mode::Exclusive);
            holder.label = Some((*label).to_owned());
            Ok(vec![holder])
        }
        ["free"] => Ok(Vec::new()),
        words => Err(store.script_error(words)),
    };
    let labels = |holders: &[Holder]| holders.iter().filter_map(|holder| holder.label.clone()).collect::<Vec<_>>();
    let seen = store.inspect(&LOOK, &key("c"), &read).await.unwrap();
    assert_eq!((seen.key, labels(&seen.holders)), (key("c"), vec!["bob".to_owned()]));
    assert!(store.inspect(&LOOK, &key("d"), &read).await.unwrap().holders.is_empty());
    assert_eq!(store.inspect(&LOOK, &key("b"), &read).await.unwrap_err().kind(), ErrorKind::Backend);
    let page = store.list(&LOOK, "", None, &read).await.unwrap();
    let shown: Vec<_> = page.keys.iter().map(|of| (of.key.to_string(), labels(&of.holders))).collect();
    assert_eq!(shown, [("a".to_owned(), vec!["ada".to_owned()]), ("c".to_owned(), vec!["bob".to_owned()])]);
    assert!(page.next.is_none());
}

#[test]
async fn a_grant_or_renewal_counts_when_enough_replicas_have_it() {
    let server = needs("redis-server", Server::start(&["--repl-diskless-sync-delay", "0"]).await);
    let replica = needs("redis-server", Server::start(&[]).await);
    replicate(&replica, &server).await;
    let awaiting = async |replicas| {
        let replicas = (replicas, Duration::from_millis(300));
        Store::open(ConnectionSettings { replicas, ..settings(&server) }, RELEASES).await.unwrap()
    };
    let (none, one, two) = (awaiting(0).await, awaiting(1).await, awaiting(2).await);
    assert_eq!([&none, &one, &two].map(Store::awaits_replicas), [false, true, true]);
    let given_back = || Box::pin(async { Ok(Held) });
    let not_given_back = || Box::pin(async { Err(Error::new(ErrorKind::Unavailable, "release")) });
    for store in [&none, &one] {
        let granted = store.confirm("{k}:lock", 7, not_given_back()).await.unwrap();
        assert_eq!(granted, Attempt::Granted { epoch: Some(7) });
    }
    let short = two.confirm("{k}:lock", 7, given_back()).await.unwrap_err();
    assert_eq!(short.kind(), ErrorKind::Unavailable);
    assert!(short.to_string().contains("1 of 2 replicas confirmed the grant"), "{short}");
    let unknown = two.confirm("{k}:lock", 7, not_given_back()).await.unwrap_err();
    assert_eq!(unknown.kind(), ErrorKind::Indeterminate);

    let renewed = async |store: &Store| {
        let statuses = vec![Ok(Held), Ok(NotHeld)];
        let names = vec!["{k}:lock".to_owned(), "{l}:lock".to_owned()];
        store.confirm_renewals(Duration::from_secs(2), names, statuses).await
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
        let short = two.confirm_renewals(Duration::from_millis(within), vec!["{k}:lock".into()], statuses).await;
        let told = short[0].as_ref().unwrap_err().to_string();
        assert!(told.contains(&format!("within {ms}ms")), "{told}");
    }
    let gone = vec![Ok(NotHeld)];
    let waits = server.calls("wait").await;
    two.confirm_renewals(Duration::from_secs(2), vec!["{k}:lock".into()], gone).await;
    assert_eq!(server.calls("wait").await, waits, "nobody is asked about what is gone");

    let held = grant("k");
    hold(&server, &none, &held).await;
    let lease = Duration::from_secs(60);
    let in_doubt = two.take_over(&TAKE_OVER, &held, held.owner, lease).await.unwrap_err();
    assert_eq!(in_doubt.kind(), ErrorKind::Indeterminate);
    assert_eq!(one.take_over(&TAKE_OVER, &held, held.owner, lease).await.unwrap(), Held);
    let renewals = [Renewal { grant: held, ttl: lease }];
    let renewed = two.renew(&RENEW, &renewals, lease).await;
    assert_eq!(renewed[0].as_ref().unwrap_err().kind(), ErrorKind::Unavailable);
    assert_eq!(*one.renew(&RENEW, &renewals, lease).await[0].as_ref().unwrap(), Held);
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

    server.ask(&["ACL", "SETUSER", "app", "on", ">pw", "+@all", "-info", "~*", "&*"]).await;
    let url = server.url().replace("redis://", "redis://app:pw@");
    assert_eq!(found(&url).await, ["settings", "privilege"]);
    let recorder = Recorder::start();
    let blind = ConnectionSettings { source: Some(Source::Url(url)), ..ConnectionSettings::default() };
    drop(Store::open(blind, RELEASES).await.unwrap());
    assert!(
        recorder.recorded().contains("whether the server evicts entries cannot be read"),
        "{}",
        recorder.recorded()
    );
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

    let queued = read_queued(&claim, "600", "7 9", &inbox).unwrap();
    let expected = Attempt::Queued {
        epoch_of_holder: Some(7),
        latest_epoch: Some(9),
        retry_in: Duration::from_millis(601),
        notifies: true,
        lease: Duration::from_secs(3),
    };
    assert_eq!(queued, expected);
    let Some(Attempt::Queued { epoch_of_holder, latest_epoch, retry_in, notifies, lease }) =
        read_queued(&Claim { ttl: Duration::from_secs(2), ..claim.clone() }, "5000", "- -7", "-")
    else {
        panic!("it is queued")
    };
    assert_eq!((epoch_of_holder, latest_epoch, notifies), (None, Some(0), false));
    assert_eq!((retry_in, lease), (Duration::from_secs(2) / 3, Duration::from_secs(2)));
    let retry_in = |ttl, left| match read_queued(&Claim { ttl, ..claim.clone() }, left, "7 9", "-") {
        Some(Attempt::Queued { retry_in, .. }) => retry_in,
        other => panic!("{other:?}"),
    };
    let short = Duration::from_millis(30);
    assert_eq!(
        (retry_in(short, "5000"), retry_in(short, "10")),
        (Duration::from_millis(50), Duration::from_millis(11))
    );
    for (left, numbers) in
        [("x", "7 9"), ("-1", "7 9"), ("600", "7"), ("600", "x 9"), ("600", " 9"), ("600", "-7 9"), ("600", "7 x")]
    {
        assert_eq!(read_queued(&claim, left, numbers, "-"), None, "{left} {numbers}");
    }
    store.close().await;
    assert_eq!(store.inbox(), None);
    assert_eq!(store.get("k").await.unwrap_err().kind(), ErrorKind::Closed);
    eventually("nobody is connected", async || server.clients().await == 0).await;
}

#[test]
async fn waiters_whom_a_release_did_not_serve_are_warned_of_once() {
    let server = needs("redis-server", Server::start(&[]).await);
    let store = open(&server).await;
    let recorder = Recorder::start();
    store.warn_of_waiters(&[]);
    assert!(!recorder.recorded().contains("waiters") && !recorder.recorded().contains("refused="));
    store.warn_of_waiters(&["NOPERM", "no"]);
    store.warn_of_waiters(&["NOPERM", "again"]);
    let log = recorder.recorded();
    assert!(log.contains("refused=\"NOPERM no\"") && !log.contains("again"), "{log}");
}

#[test]
async fn texts_are_read_and_scripts_are_loaded_before_they_are_needed() {
    static ECHO: Script = Script::new(&["return { 'heard', ARGV[1] or '' }"]);
    let server = needs("redis-server", Server::start(&[]).await);
    let store = open(&server).await;
    assert_eq!(store.get("k").await.unwrap(), None);
    server.ask(&["SET", "k", "text"]).await;
    assert_eq!(store.get("k").await.unwrap().as_deref(), Some("text"));
    store.load(&[&ECHO]).await.unwrap();
    let loaded = server.calls("eval").await;
    assert_eq!(loaded, 2, "that of the functions, and this one");
    let reply = store.run(&ECHO, 0, ScriptArguments::default().word("a"), None).await.unwrap();
    assert_eq!((reply.words(), server.calls("eval").await), (vec!["heard", "a"], loaded));
}
