//! `watch --json`, for scripts.

use std::process::{Command, Stdio};

use leasehold_testkit::redis::Server;
use leasehold_testkit::{needs, test};
use rustix::process::Signal;
use serde_json::Value;

use crate::support::{Place, Running};
use crate::watch::watch;

fn lines(place: &Place, args: &[&str]) -> Running {
    Running::start(&mut place.leasehold(&[&["watch", "--json", "--interval", "100ms"], args].concat()))
}

/// The next line: its event and its key, and all of it.
fn next(running: &mut Running) -> (String, String, Value) {
    let line: Value = serde_json::from_str(&running.line()).unwrap();
    assert!(line["time_ms"].as_u64().is_some_and(|millis| millis > 1_700_000_000_000), "since 1970: {line}");
    let text = |field: &str| line[field].as_str().unwrap_or_default().to_owned();
    (text("event"), text("key"), line)
}

#[test]
fn a_line_is_printed_for_each_change() {
    let place = Place::file();
    let ada = place.hold_with(&["--label", "ada"], "job/a");
    let other = place.hold("other");
    let mut watching = lines(&place, &["job/"]);
    let (event, key, line) = next(&mut watching);
    assert_eq!((event.as_str(), key.as_str()), ("held", "job/a"));
    let holder = &line["holders"][0];
    assert_eq!((&holder["label"], &holder["mode"]), (&"ada".into(), &"exclusive".into()));
    assert!(holder["token"].as_u64().unwrap() > 0 && line["waiters"].is_null());
    let (event, _, line) = next(&mut watching);
    assert_eq!((event.as_str(), &line["keys"]), ("listed", &1.into()));
    drop(ada);
    let (event, key, _) = next(&mut watching);
    assert_eq!((event.as_str(), key.as_str()), ("free", "job/a"));
    let _bob = place.hold_with(&["--label", "bob"], "job/b");
    let (event, key, _) = next(&mut watching);
    assert_eq!((event.as_str(), key.as_str()), ("held", "job/b"));
    watching.signal(Signal::INT);
    let ended = watching.end_by_itself();
    assert_eq!((ended.code, ended.errors.as_str()), (Some(130), ""), "{ended:?}");
    drop(other);
}

#[test]
fn it_ends_quietly_when_nobody_reads_it_although_nothing_changes() {
    let place = Place::file();
    let _holder = place.hold("k");
    let mut program = place.leasehold(&["watch", "--json", "--interval", "100ms"]);
    let mut program = program.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let first = Command::new("head").args(["-n", "1"]).stdin(program.stdout.take().unwrap()).output().unwrap();
    assert!(String::from_utf8_lossy(&first.stdout).contains("held"));
    let ended = program.wait_with_output().unwrap();
    assert_eq!((ended.status.code(), String::from_utf8_lossy(&ended.stderr).as_ref()), (Some(0), ""));
}

#[test]
fn a_redis_that_goes_away_is_told_and_the_table_goes_on_when_it_is_back() {
    let mut server = needs("redis-server", Server::start_blocking(&[]));
    let place = Place::at(format!("redis://127.0.0.1:{}/0", server.port()));
    let mut first = place.hold_with(&["--label", "ada", "--ttl", "1h"], "job/a");
    let mut terminal = watch(&place, &[], (150, 20));
    let mut watching = lines(&place, &[]);
    terminal.shows("job/a");
    terminal.until("a lease", |screen| screen.contents().contains("59 m").then_some(()));
    assert_eq!([next(&mut watching).0, next(&mut watching).0], ["held", "listed"]);
    server.kill();
    terminal.shows("OLD: no answer for");
    terminal.shows("job/a");
    let (event, _, line) = next(&mut watching);
    assert_eq!(event, "unanswered", "{line}");
    assert!(!line["message"].as_str().unwrap().is_empty());
    first.signal(Signal::KILL);
    first.close_input();
    server.restart_blocking();
    terminal.shows_no("OLD");
    terminal.shows("nothing is held");
    assert_eq!([next(&mut watching).0, next(&mut watching).0], ["free", "listed"]);
    let _second = place.hold_with(&["--label", "bob"], "job/b");
    terminal.shows("bob");
    assert_eq!(next(&mut watching).1, "job/b");
    terminal.type_in("q");
    assert_eq!(terminal.end().code(), Some(0));
    watching.signal(Signal::TERM);
    assert_eq!(watching.end_by_itself().code, Some(143));
}

#[test]
fn a_store_that_cannot_be_reached_at_first_is_69() {
    let place = Place::at("redis://127.0.0.1:1");
    assert_eq!(place.code(&["watch", "--json"]), 69);
}
