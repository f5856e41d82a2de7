//! Who gets the lock, and for how long.

use std::time::Duration;

use leasehold::Clock;
use leasehold_testkit::test;
use rustix::process::Signal;
use serde_json::Value;

use crate::support::{Place, ended, redis};

#[test]
fn a_held_key_exits_with_75_or_the_chosen_code() {
    let place = Place::file();
    let holder = place.hold_with("--reason 'nightly report' --label ada", "k");
    for (options, code) in
        [("-n", 75), ("-w 0", 75), ("-w 50ms", 75), ("-n -E 3", 3), ("--nonblock --conflict-exit-code 0", 0)]
    {
        let busy = place.run(&format!("run {options} k -- echo ran"));
        busy.is(code, &[]).prints("");
        // It says who and why, unless that is no failure.
        assert_eq!(busy.errors.contains("ada (nightly report)"), code != 0, "{busy:?}");
    }
    assert!(place.is_free("other"));
    holder.end().is(0, &[]);
    assert!(place.is_free("k"));
}

#[test]
fn several_keys_are_held_all_or_none_and_lost_together() {
    let place = Place::file();
    let print = r#"echo "$LEASEHOLD_KEY $LEASEHOLD_TOKEN $LEASEHOLD_TOKENS""#;
    let said = place.run(&["run", "b", "-k", "a", "-k", "b", "-k", "c", "-c", print]).output;
    let [key, token, tokens] = said.splitn(3, ' ').collect::<Vec<_>>()[..] else { panic!("{said}") };
    let tokens: Value = serde_json::from_str(tokens).unwrap();
    assert_eq!((key, tokens["b"].to_string().as_str(), tokens.as_object().unwrap().len()), ("b", token, 3), "{said}");

    let other = place.hold("c");
    place.run("run -n a -k c true").is(75, &["c is held by"]);
    assert!(place.is_free("a"), "the lock that it had is kept");
    other.end().is(0, &[]);

    let holder = place.hold_with("-k c -k b", "a");
    assert_eq!(["a", "b", "c"].map(|key| place.code(&["inspect", "-e", key])), [0; 3]);
    assert_eq!(place.code("force-release b"), 0);
    holder.end_by_itself().is(76, &[]);
    assert_eq!(place.code("run -n a -k b -k c true"), 0, "a lock was left");
}

#[test]
fn min_hold_keeps_the_key_although_the_command_has_ended_until_a_signal_comes() {
    let place = Place::file();
    let clock = Clock::system();
    let started = clock.now();
    assert_eq!(place.code("run --min-hold 400ms k -c 'exit 3'"), 3);
    assert!(clock.now().since(started) >= Duration::from_millis(400));

    let mut keeper = place.start("run --json --min-hold 1h k true");
    keeper.event("exited");
    assert!(!place.is_free("k"));
    keeper.signal(Signal::TERM);
    assert_eq!(keeper.event("released")["outcome"], "released");
    keeper.end().is(0, &[]);
    assert!(place.is_free("k"));
}

#[test]
fn a_command_that_asks_for_the_lock_that_it_runs_under_is_told_so() {
    let place = Place::file();
    let nested = |outer: &str, inner: &str| {
        let program = env!("CARGO_BIN_EXE_leasehold");
        place.run(&format!("run --label ada {outer} k -- {program} run {inner} -- echo ran"))
    };
    for (outer, inner) in [("", "k"), ("", "--restart k"), ("-s", "k"), ("", "-s k")] {
        nested(outer, inner).is(64, &["k is held by ada", "part of"]).prints("");
    }
    nested("-k j", "i -k j").is(64, &["j is held by ada"]);
    for (outer, inner) in [("", "j"), ("-s", "-s k")] {
        assert_eq!(nested(outer, inner).is(0, &[]).prints("ran\n").errors, "");
    }
    // A wait with an end needs no other answer.
    nested("", "-n k").is(75, &[]);
    // What was left behind by a command that has ended is not under its lock any more.
    let token = place.run("run k -c 'echo $LEASEHOLD_TOKEN'").output;
    let mut left = place.leasehold("run k true");
    ended(left.env("LEASEHOLD_KEY", "k").env("LEASEHOLD_TOKEN", token.trim())).is(0, &[]);
}

/// As `flock(1)` does. With a lease, the next holder waits until its end instead.
#[test]
fn what_a_killed_program_has_started_keeps_the_key_of_a_file_until_it_ends() {
    let place = Place::file();
    // The shell dies with the program on Linux; what it has started reads until the test closes its input.
    let killed = |options: &str| {
        let mut holder =
            place.start(&format!("run --label ada {options} k -c 'exec 3<&0; cat <&3 >&2 & echo ready; wait'"));
        holder.expect_line("ready");
        holder.signal(Signal::KILL);
        holder
    };
    for mode in ["", "-s"] {
        let mut holder = killed(mode);
        // Its output has ended, and with it the program and the shell.
        assert_eq!(holder.line(), "");
        place.run("run -n k true").is(75, &["held by ada"]);
        holder.close_input();
        place.wait_until_free("k");
        holder.end();
    }
    let holder = killed("--close");
    place.wait_until_free("k");
    holder.end();
    // What was released is free, whatever was left behind.
    let mut ended = place.start("run --json k -c 'exec 3<&0; cat <&3 >/dev/null 2>&1 & echo done'");
    ended.event("released");
    assert!(place.is_free("k"));
    ended.end();
}

#[test]
fn a_command_is_told_once_that_another_program_waits() {
    Place::file().run("run --on-wanted TERM k true").is(78, &["needs a store with a queue"]);
    let (_server, place) = redis("");
    let script = "trap 'echo wanted; exec cat' USR1; echo ready; while :; do sleep 0.05; done";
    let mut holder = place.start(&["run", "--on-wanted", "usr1", "k", "-c", script]);
    holder.expect_line("ready");
    let waiter = place.start("run -w 60s k true");
    // A second signal would end `cat`.
    holder.expect_line("wanted");
    holder.end().is(0, &[]);
    waiter.end_by_itself().is(0, &[]);
}
