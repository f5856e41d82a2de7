//! A command that is kept running on one of many hosts: `--restart`.

use leasehold_testkit::test;
use rustix::process::Signal;

use crate::support::{Place, Running, redis};

/// A host that runs a command, which says its token and then waits for its input to end.
fn host(place: &Place, options: &str) -> Running {
    let command = "echo $LEASEHOLD_TOKEN; exec cat";
    Running::start(place.leasehold(&format!("run --json --restart {options} worker -c")).arg(command))
}

#[test]
fn one_of_several_hosts_runs_the_command_and_the_next_when_it_is_gone() {
    let (_server, on_redis) = redis("");
    for (place, options) in [(Place::file(), ""), (on_redis, "--ttl 3s")] {
        let mut first = host(&place, options);
        let mut tokens = vec![first.line().parse::<u64>().unwrap()];
        let mut second = host(&place, options);
        second.event("waiting");
        first.signal(Signal::KILL);
        tokens.push(second.line().parse().unwrap());
        let mut third = host(&place, options);
        third.event("waiting");
        // Told to end, it hands off: its command ends, and the next one starts.
        second.signal(Signal::TERM);
        assert_eq!(second.event("exited")["signal"], Signal::TERM.as_raw());
        assert_eq!(second.event("released")["outcome"], "released");
        second.end_by_itself().is(128 + 15, &[]).prints("");
        tokens.push(third.line().parse().unwrap());
        assert!(tokens.is_sorted_by(|one, next| one < next), "{tokens:?}");
        third.signal(Signal::INT);
        third.end_by_itself().is(128 + 2, &[]).prints("");
        assert!(place.is_free("worker"), "nobody runs it any more");
    }
}

#[test]
fn a_command_that_ends_is_started_again_under_a_new_lock() {
    let place = Place::file();
    let mut host = place.start("run --json --restart k -c 'echo $LEASEHOLD_TOKEN; exit 3'");
    let (mut tokens, mut pauses) = (Vec::new(), Vec::new());
    for _ in 0..2 {
        tokens.push(host.line().parse::<u64>().unwrap());
        assert_eq!(host.event("exited")["code"], 3);
        assert_eq!(host.event("released")["outcome"], "released");
        pauses.push(host.event("restarting")["pause_ms"].as_u64().unwrap());
    }
    assert!(tokens[0] < tokens[1], "{tokens:?}");
    assert_eq!(pauses, [1000, 2000]);
    // It pauses, holding nothing.
    assert!(place.is_free("k"));
    host.signal(Signal::TERM);
    host.end_by_itself().is(128 + 15, &[]);
}

#[test]
fn a_command_whose_lock_was_taken_away_is_started_again_and_one_that_cannot_be_started_is_not() {
    let place = Place::file();
    let mut host = place.start("run --json --restart --ttl 600ms k cat");
    host.event("started");
    assert_eq!(place.code("force-release k"), 0);
    for event in ["lost", "exited", "restarting", "started"] {
        host.event(event);
    }
    host.signal(Signal::TERM);
    host.end_by_itself().is(128 + 15, &[]);
    assert_eq!(place.code("run --restart k no-such-command"), 127);
}
