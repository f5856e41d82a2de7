//! Who gets the lock, and for how long.

use std::time::Duration;

use leasehold::Clock;
use rustix::process::Signal;

use crate::support::{Place, Running, text};
use leasehold_testkit::{eventually_some, test};

#[test]
fn a_held_key_exits_with_75_or_the_chosen_code() {
    let place = Place::file();
    let holder = place.hold_with(&["--reason", "nightly report", "--label", "ada"], "k");
    for (options, code) in [
        (&["-n"][..], 75),
        (&["-w", "0"], 75),
        (&["-w", "50ms"], 75),
        (&["-n", "-E", "3"], 3),
        (&["--nonblock", "--conflict-exit-code", "0"], 0),
    ] {
        let output = place.run(&[&["run"], options, &["k", "--", "echo", "ran"]].concat());
        assert_eq!(output.status.code(), Some(code), "{options:?}: {output:?}");
        assert_eq!(text(&output.stdout), "", "the command must not run");
        let errors = text(&output.stderr);
        let told = errors.contains("ada") && errors.contains("nightly report");
        assert_eq!(told, code != 0, "it says who and why, unless that is no failure: {errors}");
    }
    assert_eq!(place.code(&["run", "-n", "other", "--", "true"]), 0);
    assert_eq!(holder.end().code, Some(0));
    assert_eq!(place.code(&["run", "-n", "k", "--", "true"]), 0);
}

#[test]
fn several_keys_are_held_all_or_none_and_lost_together() {
    let place = Place::file();
    let print = r#"echo "$LEASEHOLD_KEY $LEASEHOLD_TOKEN $LEASEHOLD_TOKENS""#;
    let said = text(&place.run(&["run", "b", "-k", "a", "-k", "b", "-k", "c", "-c", print]).stdout);
    let (key, tokens) = said.split_once(' ').unwrap();
    let (token, tokens) = tokens.split_once(' ').unwrap();
    let tokens: serde_json::Value = serde_json::from_str(tokens).unwrap();
    assert_eq!((key, tokens["b"].to_string().as_str(), tokens.as_object().unwrap().len()), ("b", token, 3), "{said}");

    let other = place.hold("c");
    let refused = place.run(&["run", "-n", "a", "-k", "c", "--", "true"]);
    assert_eq!(
        (refused.status.code(), text(&refused.stderr).contains("c is held by")),
        (Some(75), true),
        "{refused:?}"
    );
    assert_eq!(place.code(&["run", "-n", "a", "--", "true"]), 0, "the lock that it had is kept");
    assert_eq!(other.end().code, Some(0));

    let holder = place.hold_with(&["-k", "c", "-k", "b"], "a");
    for key in ["a", "b", "c"] {
        assert_eq!(place.code(&["inspect", "-e", key]), 0, "{key}");
    }
    assert_eq!(place.code(&["force-release", "b"]), 0);
    assert_eq!(holder.end_by_itself().code, Some(76));
    assert_eq!(place.code(&["run", "-n", "a", "-k", "b", "-k", "c", "--", "true"]), 0, "a lock was left");
    assert_eq!(place.code(&["run", "-s", "a", "-k", "b", "--", "true"]), 64);
}

#[test]
fn a_waiter_gets_the_key_when_the_holder_ends() {
    let place = Place::file();
    let mut holder = place.hold("k");
    let mut waiter = Running::start(&mut place.leasehold(&["run", "--json", "k", "--", "echo", "mine"]));
    let waiting = waiter.event("waiting");
    assert_eq!((&waiting["key"], &waiting["backend"]), (&"k".into(), &place.backend().into()));
    assert!(waiting["holders"][0]["label"].as_str().unwrap().contains(" pid "), "{waiting}");
    holder.close_input();
    let ended = waiter.end();
    assert_eq!((ended.code, ended.output.as_str()), (Some(0), "mine\n"));
}

#[test]
fn the_next_holder_gets_the_key_at_once_when_the_holder_is_killed_and_its_command_dies_with_it() {
    let place = Place::file();
    // One program without a shell around it: the parent-death signal reaches the command itself.
    let mut holder = place.hold("k");
    holder.signal(Signal::KILL);
    if cfg!(target_os = "linux") {
        // Its output ends only when both it and its command are gone, although the command's input is open.
        assert_eq!(holder.line(), "");
    }
    eventually_some("the key is free", || (place.code(&["run", "-n", "k", "--", "true"]) == 0).then_some(()));
    assert_eq!(holder.end().code, None);
}

#[test]
fn readers_share_and_keep_writers_out() {
    let place = Place::file();
    let one = place.hold_with(&["--shared"], "k");
    let two = place.hold_with(&["-s"], "k");
    assert_eq!(place.code(&["run", "-n", "k", "--", "true"]), 75);
    assert_eq!(one.end().code, Some(0));
    assert_eq!(place.code(&["run", "-n", "k", "--", "true"]), 75);
    assert_eq!(two.end().code, Some(0));
    let writer = place.hold("k");
    assert_eq!(place.code(&["run", "-n", "-s", "k", "--", "true"]), 75);
    assert_eq!(writer.end().code, Some(0));
}

#[test]
fn min_hold_keeps_the_key_although_the_command_has_ended() {
    let place = Place::file();
    let clock = Clock::system();
    let started = clock.now();
    assert_eq!(place.code(&["run", "--min-hold", "400ms", "k", "--", "sh", "-c", "exit 3"]), 3);
    assert!(clock.now().since(started) >= Duration::from_millis(400));
}

#[test]
fn a_signal_cuts_min_hold_short_and_the_key_is_free() {
    let place = Place::file();
    let mut keeper = Running::start(&mut place.leasehold(&["run", "--json", "--min-hold", "1h", "k", "--", "true"]));
    keeper.event("exited");
    assert_eq!(place.code(&["run", "-n", "k", "--", "true"]), 75);
    keeper.signal(Signal::TERM);
    assert_eq!(keeper.event("released")["outcome"], "released");
    assert_eq!(keeper.end().code, Some(0));
    assert_eq!(place.code(&["run", "-n", "k", "--", "true"]), 0);
}

#[test]
fn a_command_that_asks_for_the_lock_that_it_runs_under_is_told_so() {
    let place = Place::file();
    let nested = |outer: &[&str], inner: &[&str]| {
        let program = env!("CARGO_BIN_EXE_leasehold");
        let args = [&["run", "--label", "ada"], outer, &["k", "--", program, "run"], inner, &["--", "echo", "ran"]];
        let output = place.run(&args.concat());
        (output.status.code().unwrap(), text(&output.stdout), text(&output.stderr))
    };
    for (outer, inner) in [(&[][..], &["k"][..]), (&[], &["--restart", "k"]), (&["-s"], &["k"]), (&[], &["-s", "k"])] {
        let (code, output, errors) = nested(outer, inner);
        assert_eq!((code, output.as_str()), (64, ""), "{outer:?} {inner:?}: {errors}");
        assert!(errors.contains("k is held by ada") && errors.contains("part of"), "{errors}");
    }
    let (code, _, errors) = nested(&["-k", "j"], &["i", "-k", "j"]);
    assert_eq!((code, errors.contains("j is held by ada")), (64, true), "{errors}");
    for (outer, inner) in [(&[][..], &["j"][..]), (&["-s"], &["-s", "k"])] {
        assert_eq!(nested(outer, inner), (0, "ran\n".to_owned(), String::new()), "{outer:?} {inner:?}");
    }
    // A wait with an end needs no other answer.
    assert_eq!(nested(&[], &["-n", "k"]).0, 75);
    // What was left behind by a command that has ended is not under its lock any more.
    let token = text(&place.run(&["run", "k", "--", "sh", "-c", "echo $LEASEHOLD_TOKEN"]).stdout);
    let mut left = place.leasehold(&["run", "k", "--", "true"]);
    let left = left.env("LEASEHOLD_KEY", "k").env("LEASEHOLD_TOKEN", token.trim()).output().unwrap();
    assert_eq!(left.status.code(), Some(0), "{left:?}");
}

/// As `flock(1)` does. With a lease, the next holder waits until its end instead.
#[test]
fn what_a_killed_program_has_started_keeps_the_key_of_a_file_until_it_ends() {
    let place = Place::file();
    // The shell dies with the program on Linux; what it has started reads until the test closes its input.
    let start = |options: &[&str]| {
        let script = "exec 3<&0; cat <&3 >&2 & echo ready; wait";
        let args = [&["run", "--label", "ada"], options, &["k", "--", "sh", "-c", script]].concat();
        let mut holder = Running::start(&mut place.leasehold(&args));
        holder.expect_line("ready");
        holder
    };
    for mode in [&[][..], &["-s"]] {
        let mut holder = start(mode);
        holder.signal(Signal::KILL);
        // Its output has ended, and with it the program and the shell.
        assert_eq!(holder.line(), "");
        let taken = place.run(&["run", "-n", "k", "--", "true"]);
        assert_eq!(taken.status.code(), Some(75), "{mode:?}: {taken:?}");
        assert!(text(&taken.stderr).contains("held by ada"), "{taken:?}");
        holder.close_input();
        eventually_some("the key is free", || (place.code(&["run", "-n", "k", "--", "true"]) == 0).then_some(()));
        holder.end();
    }
    let mut holder = start(&["--close"]);
    holder.signal(Signal::KILL);
    eventually_some("the key is free", || (place.code(&["run", "-n", "k", "--", "true"]) == 0).then_some(()));
    holder.close_input();
    holder.end();
    // What was released is free, whatever was left behind.
    let left = "exec 3<&0; cat <&3 >/dev/null 2>&1 & echo done";
    let mut ended = Running::start(&mut place.leasehold(&["run", "--json", "k", "--", "sh", "-c", left]));
    ended.event("released");
    assert_eq!(place.code(&["run", "-n", "k", "--", "true"]), 0);
    ended.end();
}

#[cfg(feature = "redis")]
#[test]
fn a_command_is_told_once_that_another_program_waits() {
    use leasehold_testkit::{needs, redis::Server};

    let refused = Place::file().run(&["run", "--on-wanted", "TERM", "k", "--", "true"]);
    assert!(
        refused.status.code() == Some(78) && text(&refused.stderr).contains("needs a store with a queue"),
        "{refused:?}"
    );
    let server = needs("redis-server", Server::start_blocking(&[]));
    let place = Place::at(format!("redis://127.0.0.1:{}/0", server.port()));
    let script = "trap 'echo wanted; exec cat' USR1; echo ready; while :; do sleep 0.05; done";
    let mut holder = Running::start(&mut place.leasehold(&["run", "--on-wanted", "usr1", "k", "-c", script]));
    holder.expect_line("ready");
    let waiter = Running::start(&mut place.leasehold(&["run", "-w", "60s", "k", "--", "true"]));
    // A second signal would end `cat`.
    holder.expect_line("wanted");
    holder.close_input();
    assert_eq!((holder.end().code, waiter.end_by_itself().code), (Some(0), Some(0)));
}
