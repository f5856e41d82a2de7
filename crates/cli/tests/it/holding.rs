//! For how long the lock is held.

use std::process::Command;
use std::time::Duration;

use leasehold::Clock;
use leasehold_testkit::{shows_nothing, test};
use rustix::process::Signal;

use crate::support::{Place, Running, ended, redis};

#[test]
fn several_keys_are_lost_together() {
    let place = Place::file();
    let holder = place.hold_with("-k c -k b", "a");
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

/// As the first process of a container, which is the parent of what has lost its own.
#[cfg(target_os = "linux")]
#[test]
fn what_the_command_leaves_behind_in_a_container_does_not_stay_as_a_zombie() {
    let place = Place::file();
    // A shell whose child outlives it, and then a look at the state of each process: Z is one that nobody has waited for.
    let script = "(sh -c 'sleep 0.2 & exec true' &); sleep 0.1; \
                  for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do sleep 0.1; \
                  left=$(cat /proc/[0-9]*/stat | grep -c '(sleep) [SRZ] 1 '); [ $left = 0 ] && break; done; echo left $left";
    let mut command = Command::new("unshare");
    command.args(["--pid", "--fork", "--mount-proc", env!("CARGO_BIN_EXE_leasehold"), "--backend", place.backend()]);
    let looked = ended(command.args(["run", "k", "-c", script]));
    if looked.errors.contains("unshare:") {
        shows_nothing("a namespace of processes takes the super-user");
    }
    looked.is(0, &[]).prints("left 0\n");
}

#[test]
fn a_command_is_told_once_that_another_program_waits() {
    Place::file().run("run --on-wanted TERM k true").is(78, &["needs a store with a queue"]);
    let (_server, place) = redis("");
    let script = "trap 'echo wanted; exec cat' USR1; echo ready; while :; do sleep 0.05; done";
    let mut holder = Running::start(place.leasehold("run --on-wanted usr1 k -c").arg(script));
    holder.expect_line("ready");
    let waiter = place.start("run -w 60s k true");
    // A second signal would end `cat`.
    holder.expect_line("wanted");
    holder.end().is(0, &[]);
    waiter.end_by_itself().is(0, &[]);
}
