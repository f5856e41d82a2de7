//! What the program does on every store, on one with leases and by way of an agent; on files `docs/commands.md` shows it. What a lock is
//! on each, its suite asks.

use leasehold_testkit::{eventually_some, test};

#[cfg(target_os = "linux")]
use crate::agent::Agent;
use crate::support::{Place, Running, redis};

#[test]
fn on_redis() {
    let (_server, place) = redis("redis-rw:");
    all_that_the_program_does(&place, "redis-rw");
}

#[cfg(target_os = "linux")]
#[test]
fn by_way_of_an_agent() {
    let (_server, place) = redis("redis-rw:");
    all_that_the_program_does(&Agent::start(&place, "").place(), "agent");
}

fn all_that_the_program_does(place: &Place, store: &str) {
    writers_exclude_and_wait_for_each_other(place);
    what_is_held_is_shown_and_taken_away(place);
    as_many_run_as_there_are_permits(place);
    readers_share_and_keep_writers_out(place);
    let examined = place.run("doctor");
    let opened = format!("\nok      open: {store} can be opened\n");
    let locked = "\nok      lock: a lock can be taken, waited for, renewed and released\n";
    assert!(examined.output.contains(&opened) && examined.output.contains(locked), "{examined:?}");
    assert!(examined.code <= Some(1), "{examined:?}");
}

fn writers_exclude_and_wait_for_each_other(place: &Place) {
    let token = || {
        let told = place.run("run -n --ttl 60s k -c 'echo $LEASEHOLD_TOKEN $LEASEHOLD_EXPIRES_IN_MS'");
        let (token, left) = told.is(0, &[]).output.trim().split_once(' ').unwrap();
        assert!((1..=60_000).contains(&left.parse::<u64>().unwrap()), "{told:?}");
        token.parse::<u64>().unwrap()
    };
    assert!(token() < token(), "tokens grow");
    let holder = place.hold_with("--label ada --reason nightly", "k");
    let mut waiter = place.start("run --json -w 60s k echo mine");
    let waiting = waiter.event("waiting");
    assert!(waiting["holders"][0]["label"].as_str().unwrap().contains("ada"), "{waiting}");
    place.run("run -n k true").is(75, &["ada", "nightly"]);
    holder.end().is(0, &[]);
    waiter.end().is(0, &[]).prints("mine\n");
}

fn readers_share_and_keep_writers_out(place: &Place) {
    let readers = ["one", "two"].map(|label| place.hold_with(&format!("-s --label {label}"), "k"));
    let held = || place.inspect("k")["holders"].as_array().unwrap().clone();
    // One grant of several is taken away by its token.
    let [first, second] = &held()[..] else { panic!("{:?}", held()) };
    let release = format!("force-release k --token {}", first["token"]);
    place.run(&release).is(0, &[first["label"].as_str().unwrap()]);
    let left = held();
    assert!(left.len() == 1 && left[0]["token"] == second["token"], "{left:?}");
    place.run(&release).is(1, &["nothing is released", second["label"].as_str().unwrap()]);
    assert!(!place.is_free("k"), "the other reader is still there");
    drop(readers);
    let readers = ["--shared", "-s"].map(|shared| place.hold_with(shared, "r"));
    for still_there in readers {
        assert!(!place.is_free("r"));
        still_there.end().is(0, &[]);
    }
    let writer = place.hold("r");
    assert_eq!(place.code("run -n -s r true"), 75);
    writer.end().is(0, &[]);
    assert_eq!(place.code("run -n -s r true"), 0);
}

fn what_is_held_is_shown_and_taken_away(place: &Place) {
    let _writer = place.hold_with("--label ada --reason nightly", "shown/writer");
    let _other = place.hold_with("--label bob", "shown/other");
    place.run("inspect shown/writer").is(0, &["exclusive", "ada", "nightly"]);
    let first = place.inspect("shown/writer");
    assert_eq!(first["waiters"], 0, "{first}");
    let waiters = [(); 2].map(|()| place.start("run -w 60s shown/writer true"));
    for command in ["inspect shown/writer --json", "list shown/writer --json"] {
        eventually_some("who waits is counted", || (place.json(command)["waiters"] == 2).then_some(()));
    }
    // The store is on this machine, and has its clock.
    let held_for = |shown: &serde_json::Value| shown["holders"][0]["held_for_ms"].as_u64().unwrap();
    let (before, now) = (held_for(&first), held_for(&place.inspect("shown/writer")));
    assert!(before <= now && (1..600_000).contains(&now), "{before}, then {now}");
    drop(waiters);
    let listed = place.run("list shown/");
    let rows: Vec<_> = listed.is(0, &[]).output.lines().filter(|line| line.contains("shown/")).collect();
    assert!(
        rows.len() == 2 && rows[0].contains("bob") && rows[1].contains("ada"),
        "in the order of the keys: {rows:?}"
    );
    let of_other = format!("--token {}", place.inspect("shown/other")["holders"][0]["token"]);
    for (key, who, only) in [("shown/writer", "ada", ""), ("shown/other", "bob", &of_other)] {
        place.run(&format!("force-release {only} {key}")).is(0, &[who]);
        assert_eq!(place.code(&format!("run -w 60s {key} true")), 0);
    }
    let free = place.run("force-release shown/other");
    free.is(1, &[]).prints(&format!("shown/other was free in {}\n", place.backend()));
}

fn as_many_run_as_there_are_permits(place: &Place) {
    let command = "run --permits 3 --label ada p -c 'echo $LEASEHOLD_KEY; exec cat'";
    let mut holders = [(); 3].map(|()| place.start(command));
    let mut slots = holders.each_mut().map(Running::line);
    slots.sort();
    assert_eq!(slots, ["p#00", "p#01", "p#02"]);
    place.run("run -n --permits 3 p echo ran").is(75, &["ada", "and 2 more"]).prints("");
    assert!(place.is_free("p"), "the key itself is another lock");
    place.run("list p#").is(0, &["p#00", "p#01", "p#02"]);
    let mut waiter = place.start("run --json --permits 3 p echo ran");
    assert_eq!(waiter.event("waiting")["holders"].as_array().map(Vec::len), Some(3));
    let [ended, ..] = holders;
    ended.end().is(0, &[]);
    waiter.end().is(0, &[]).prints("ran\n");
    assert_eq!(place.code("run -n --permits 3 p true"), 0, "a permit is free");
}
