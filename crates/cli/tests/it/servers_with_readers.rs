//! The servers that have readers beside writers: what the program does there, and what it says where there is none.

use leasehold_testkit::{eventually_some, launch::free_port, test};
use rustix::process::Signal;
use serde_json::Value;

#[cfg(feature = "redis")]
use crate::agent::Agent;
use crate::support::{Place, Running, text};

fn wait_for<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap().block_on(work)
}

#[cfg(feature = "postgres")]
#[test]
fn on_postgres() {
    let server = wait_for(leasehold_testkit::postgres::Server::needed(&[]));
    // The other name of the scheme.
    let place = Place::at(server.url().replacen("postgres:", "postgresql:", 1));
    assert_eq!(place.code(&["migrate"]), 0);
    all_that_the_program_does(&place, "postgres");
    let down = format!("postgres://ada:c4n4ry@127.0.0.1:{}/locks?sslmode=disable", free_port().unwrap());
    says_that_it_is_down("postgres", &down);
}

#[cfg(feature = "redis")]
#[test]
fn on_redis() {
    use leasehold_testkit::{needs, redis::Server};

    let server = needs("redis-server", Server::start_blocking(&[]));
    all_that_the_program_does(&Place::at(format!("redis-rw:redis://127.0.0.1:{}/0", server.port())), "redis-rw");
    says_that_it_is_down("redis-rw", &format!("redis-rw:redis://ada:c4n4ry@127.0.0.1:{}", free_port().unwrap()));
}

#[cfg(feature = "redis")]
#[test]
fn by_way_of_an_agent() {
    use leasehold_testkit::{needs, redis::Server};

    let server = needs("redis-server", Server::start_blocking(&[]));
    let agent = Agent::start(&Place::at(format!("redis-rw:redis://127.0.0.1:{}/0", server.port())), &[]);
    all_that_the_program_does(&agent.place(), "agent");
    says_that_it_is_down("agent", "agent:/nowhere/agent.sock");
}

#[cfg(feature = "etcd")]
#[test]
fn on_etcd() {
    let cluster = wait_for(leasehold_testkit::etcd::Cluster::one(&[]));
    all_that_the_program_does(&Place::at(format!("{}/billing", cluster.url())), "etcd");
    says_that_it_is_down("etcd", &format!("etcd://ada:c4n4ry@127.0.0.1:{}?sslmode=disable", free_port().unwrap()));
}

/// What a command says on its output, and its exit code.
fn said(place: &Place, args: &[&str]) -> (i32, String) {
    let output = place.run(args);
    (output.status.code().unwrap(), text(&output.stdout))
}

fn all_that_the_program_does(place: &Place, store: &str) {
    writers_exclude_and_wait_for_each_other(place);
    readers_share_and_keep_writers_out(place);
    what_is_held_is_shown_and_taken_away(place, store);
    one_grant_of_several_is_taken_away_by_its_token(place);
    as_many_run_as_there_are_permits(place);
    the_key_of_a_holder_that_was_killed_is_free_after_its_lease(place);

    let (code, out) = said(place, &["doctor"]);
    assert!(code <= 1, "{out}");
    let lines: Vec<_> = out.lines().collect();
    assert!(lines[0].starts_with("store   ") && lines[1] == format!("ok      open: {store} can be opened"), "{out}");
    assert!(lines.contains(&"ok      lock: a lock can be taken, waited for, renewed and released"), "{out}");
}

fn writers_exclude_and_wait_for_each_other(place: &Place) {
    let told = ["run", "-n", "--ttl", "60s", "k", "--", "sh", "-c", "echo $LEASEHOLD_TOKEN $LEASEHOLD_EXPIRES_IN_MS"];
    let run = || {
        let (code, out) = said(place, &told);
        assert_eq!(code, 0, "{out}");
        let numbers: Vec<u64> = out.split_whitespace().map(|number| number.parse().unwrap()).collect();
        assert!((1..=60_000).contains(&numbers[1]), "{out}");
        numbers[0]
    };
    let first = run();
    assert!(run() > first, "tokens grow");
    let mut holder = place.hold("k");
    let mut waiter = Running::start(&mut place.leasehold(&["run", "--json", "-w", "60s", "k", "--", "echo", "mine"]));
    waiter.event("waiting");
    assert_eq!(place.code(&["run", "-n", "k", "--", "true"]), 75);
    holder.close_input();
    assert_eq!(holder.end().code, Some(0));
    let ended = waiter.end();
    assert_eq!((ended.code, ended.output.as_str()), (Some(0), "mine\n"), "{ended:?}");
}

fn readers_share_and_keep_writers_out(place: &Place) {
    let one = place.hold_with(&["--shared"], "k");
    let two = place.hold_with(&["-s"], "k");
    for still_there in [one, two] {
        assert_eq!(place.code(&["run", "-n", "k", "--", "true"]), 75);
        assert_eq!(still_there.end().code, Some(0));
    }
    let writer = place.hold("k");
    assert_eq!(place.code(&["run", "-n", "-s", "k", "--", "true"]), 75);
    assert_eq!(writer.end().code, Some(0));
    assert_eq!(place.code(&["run", "-n", "-s", "k", "--", "true"]), 0);
}

/// What `inspect --json` shows.
fn seen(place: &Place, key: &str) -> Value {
    serde_json::from_slice(&place.run(&["inspect", "--json", key]).stdout).unwrap()
}

fn what_is_held_is_shown_and_taken_away(place: &Place, store: &str) {
    let writer = place.hold_with(&["--label", "ada", "--reason", "nightly"], "shown/writer");
    let reader = place.hold_with(&["-s", "--label", "bob"], "shown/reader");
    let (code, out) = said(place, &["inspect", "shown/writer"]);
    assert!(code == 0 && ["exclusive", "ada", "nightly"].iter().all(|word| out.contains(word)), "{out}");
    let first = seen(place, "shown/writer");
    // Counted by a store that keeps a queue.
    assert_eq!(first["waiters"], if store == "postgres" { Value::Null } else { 0.into() }, "{first}");
    let waiter = Running::start(&mut place.leasehold(&["run", "-w", "60s", "shown/writer", "--", "true"]));
    if store != "postgres" {
        let counted = || (seen(place, "shown/writer")["waiters"] == 1).then_some(());
        eventually_some("who waits is counted", counted);
    }
    // The store is on this machine, and has its clock.
    let held_for = |shown: &Value| shown["holders"][0]["held_for_ms"].as_u64();
    let (before, now) = (held_for(&first), held_for(&seen(place, "shown/writer")));
    assert_eq!(now.is_some(), store != "etcd", "{first}");
    assert!(before <= now && now.is_none_or(|ms| (1..600_000).contains(&ms)), "{before:?}, then {now:?}");
    drop(waiter);
    let (code, out) = said(place, &["list", "shown/"]);
    let rows: Vec<_> = out.lines().filter(|line| line.contains("shown/")).collect();
    assert!(code == 0 && rows.len() == 2, "{out}");
    assert!(rows[0].contains("shared") && rows[0].contains("bob"), "in the order of the keys: {out}");
    assert!(rows[1].contains("exclusive") && rows[1].contains("ada"), "{out}");
    for (key, who, mode) in [("shown/writer", "ada", &[][..]), ("shown/reader", "bob", &["-s"])] {
        let (code, out) = said(place, &["force-release", key]);
        assert!(code == 0 && out.contains(who), "{out}");
        assert_eq!(place.code(&[&["run", "-w", "60s"], mode, &[key, "--", "true"]].concat()), 0);
    }
    let (code, out) = said(place, &["force-release", "shown/writer"]);
    assert!(code == 1 && out.starts_with("shown/writer was free in "), "{out}");
    assert!(out.ends_with(&format!("{}\n", place.backend())), "{out}");
    drop((writer, reader));
}

fn one_grant_of_several_is_taken_away_by_its_token(place: &Place) {
    let readers = [place.hold_with(&["-s", "--label", "one"], "t"), place.hold_with(&["-s", "--label", "two"], "t")];
    let held = || seen(place, "t")["holders"].as_array().unwrap().clone();
    let [first, second] = &held()[..] else { panic!("{:?}", held()) };
    let token = first["token"].to_string();
    let (code, out) = said(place, &["force-release", "t", "--token", &token]);
    assert!(code == 0 && out.contains(first["label"].as_str().unwrap()), "{out}");
    let left = held();
    assert!(left.len() == 1 && left[0]["token"] == second["token"], "{left:?}");
    let (code, out) = said(place, &["force-release", "t", "--token", &token]);
    assert!(
        code == 1 && out.contains("nothing is released") && out.contains(second["label"].as_str().unwrap()),
        "{out}"
    );
    assert_eq!(place.code(&["run", "-n", "t", "--", "true"]), 75, "the other reader is still there");
    drop(readers);
}

fn as_many_run_as_there_are_permits(place: &Place) {
    let options = ["--permits", "2"];
    let mut held: Vec<_> = (0..2).map(|_| place.hold_with(&options, "p")).collect();
    let third = ["run", "-n", "--permits", "2", "p", "--", "true"];
    assert_eq!(place.code(&third), 75);
    let listed = text(&place.run(&["list", "p#"]).stdout);
    assert!(listed.contains("p#00") && listed.contains("p#01"), "{listed}");
    held.pop().unwrap().end();
    assert_eq!(place.code(&third), 0);
}

fn the_key_of_a_holder_that_was_killed_is_free_after_its_lease(place: &Place) {
    let killed = place.hold_with(&["--ttl", "2s"], "killed");
    killed.signal(Signal::KILL);
    eventually_some("its lease ends", || (place.code(&["run", "-n", "killed", "--", "true"]) == 0).then_some(()));
}

fn says_that_it_is_down(store: &str, url: &str) {
    let place = Place::at(url);
    for (args, code) in [
        (&["run", "-n", "k", "--", "true"][..], 69),
        (&["run", "-w", "100ms", "-s", "k", "--", "true"], 69),
        (&["inspect", "k"], 69),
        (&["list"], 69),
        (&["force-release", "k"], 69),
        (&["doctor"], 2),
    ] {
        let output = place.run(args);
        let said = text(&output.stdout) + &text(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{args:?}: {said}");
        assert!(said.contains(store) && said.contains("is the server"), "{args:?}: {said}");
        assert!(!said.contains("c4n4ry"), "{args:?}: {said}");
    }
}
