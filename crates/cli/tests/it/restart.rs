//! A command that is kept running on one of many hosts: `--restart`.

use std::fs;
use std::path::Path;

use rustix::process::Signal;

use crate::support::{Place, Running};
use leasehold_testkit::eventually_some;
#[cfg(feature = "redis")]
use leasehold_testkit::{needs, redis::Server, test};

/// A host: its command appends its name and its token to the file, and then waits for its input to end.
fn host(place: &Place, name: &str, log: &Path, options: &[&str]) -> Running {
    let command = format!("echo {name} $LEASEHOLD_TOKEN >> '{}'; exec cat", log.display());
    let args = [&["run", "--json", "--restart"], options, &["worker", "--", "sh", "-c", &command]].concat();
    Running::start(&mut place.leasehold(&args))
}

/// The lines of the file, once there are so many.
fn lines(log: &Path, count: usize) -> Vec<(String, u64)> {
    eventually_some(&format!("{count} starts"), || {
        let text = fs::read_to_string(log).unwrap_or_default();
        let lines: Vec<_> = text.lines().filter_map(|line| line.split_once(' ')).collect();
        let lines: Option<Vec<_>> =
            lines.into_iter().map(|(name, token)| Some((name.to_owned(), token.parse().ok()?))).collect();
        lines.filter(|lines| lines.len() >= count)
    })
}

#[test]
fn one_of_several_hosts_runs_the_command_and_the_next_when_it_is_gone() {
    one_runs_it_and_then_the_next(&Place::file(), &[]);
}

#[cfg(feature = "redis")]
#[test]
fn one_of_several_hosts_runs_the_command_on_redis_and_the_next_when_it_is_gone() {
    let server = needs("redis-server", Server::start_blocking(&[]));
    one_runs_it_and_then_the_next(&Place::at(format!("redis://127.0.0.1:{}/0", server.port())), &["--ttl", "3s"]);
}

fn one_runs_it_and_then_the_next(place: &Place, options: &[&str]) {
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("log");
    let mut first = host(place, "first", &log, options);
    first.event("started");
    let mut second = host(place, "second", &log, options);
    second.event("waiting");
    first.signal(Signal::KILL);
    second.event("started");
    let mut third = host(place, "third", &log, options);
    third.event("waiting");
    // Told to end, it hands off: its command ends, and the next one starts.
    second.signal(Signal::TERM);
    assert_eq!(second.event("exited")["signal"], Signal::TERM.as_raw());
    assert_eq!(second.event("released")["outcome"], "released");
    assert_eq!(second.end_by_itself().code, Some(128 + 15));
    third.event("started");
    let starts = lines(&log, 3);
    let names: Vec<_> = starts.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["first", "second", "third"]);
    assert!(starts.is_sorted_by(|(_, one), (_, next)| one < next), "{starts:?}");
    third.signal(Signal::INT);
    assert_eq!(third.end_by_itself().code, Some(128 + 2));
    assert_eq!(place.code(&["run", "-n", "worker", "--", "true"]), 0, "nobody runs it any more");
}

#[test]
fn a_command_that_ends_is_started_again_under_a_new_lock() {
    let place = Place::file();
    let mut host = Running::start(&mut place.leasehold(&[
        "run",
        "--json",
        "--restart",
        "k",
        "--",
        "sh",
        "-c",
        "echo $LEASEHOLD_TOKEN; exit 3",
    ]));
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
    assert_eq!(place.code(&["run", "-n", "k", "--", "true"]), 0);
    host.signal(Signal::TERM);
    assert_eq!(host.end_by_itself().code, Some(128 + 15));
}

#[test]
fn a_command_whose_lock_was_taken_away_is_started_again() {
    let place = Place::file();
    let mut host =
        Running::start(&mut place.leasehold(&["run", "--json", "--restart", "--ttl", "600ms", "k", "--", "cat"]));
    host.event("started");
    assert_eq!(place.code(&["force-release", "k"]), 0);
    host.event("lost");
    host.event("exited");
    host.event("restarting");
    host.event("started");
    host.signal(Signal::TERM);
    assert_eq!(host.end_by_itself().code, Some(128 + 15));
}

#[test]
fn a_command_that_cannot_be_started_is_not_tried_again() {
    let place = Place::file();
    assert_eq!(place.code(&["run", "--restart", "k", "--", "no-such-command"]), 127);
    for option in ["-n", "-w1s", "-s"] {
        assert_eq!(place.code(&["run", "--restart", option, "k", "--", "true"]), 64, "{option}");
    }
}
