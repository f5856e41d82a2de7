//! What the program does where a store is a server that may be slow, silent or gone.

use std::time::Duration;

use leasehold::Clock;
use leasehold_testkit::launch::free_port;
use leasehold_testkit::redis::Server;
use leasehold_testkit::{needs, test};
use rustix::process::Signal;

use crate::support::{Place, ended, redis};

#[test]
fn a_holder_that_was_stopped_past_its_lease_kills_its_command_when_it_wakes_up() {
    let (_server, place) = redis("");
    let command = "k -c 'echo $LEASEHOLD_TOKEN; exec cat'";
    let mut first = place.start(&format!("run --json --ttl 500ms {command}"));
    let token: u64 = first.line().parse().unwrap();
    first.signal(Signal::STOP);
    let mut second = place.start(&format!("run {command}"));
    let larger: u64 = second.line().parse().unwrap();
    assert!(larger > token, "{larger} must be larger than {token}");
    first.signal(Signal::CONT);
    assert_eq!(first.event("lost")["action"], "kill", "past the deadline another may hold it");
    assert_eq!(first.event("exited")["signal"], Signal::KILL.as_raw());
    first.end_by_itself().is(76, &[]);
    assert!(!place.is_free("k"), "the second still holds it");
    second.end().is(0, &[]);
}

#[test]
fn a_holder_whose_server_dies_loses_its_lock_on_time_and_who_comes_then_waits_until_it_is_back() {
    let (mut server, place) = redis("");
    let mut holder = place.hold_with("--json --ttl 1s", "k");
    server.kill();
    let lost = holder.event("lost");
    assert!(lost["reason"] == "unreachable" && lost["action"] == "term", "{lost}");
    assert!(lost["left_ms"].as_u64().unwrap() > 0, "it is told before it is lost: {lost}");
    holder.end_by_itself().is(76, &[]);

    let mut runs = ["-w60s", "", "--restart"].map(|wait| {
        let mut run = place.start(&format!("run --json {wait} k{wait} -c 'echo ran; exec cat'"));
        let warning = run.event("warning").to_string();
        assert!(warning.contains("trying again"), "{wait}: {warning}");
        run
    });
    server.restart_blocking();
    for run in &mut runs {
        run.expect_line("ran");
    }
}

#[test]
fn a_server_that_does_not_start_within_the_wait_is_69() {
    let place = Place::at(format!("redis://127.0.0.1:{}", free_port().unwrap()));
    let clock = Clock::system();
    let started = clock.now();
    let refused = place.run("run -w 1s k -- echo ran");
    refused.is(69, &[]).prints("");
    let waited = clock.now().since(started);
    assert!(waited >= Duration::from_secs(1), "it gave up after {waited:?}");
    assert_eq!(refused.errors.matches("trying again").count(), 1, "{refused:?}");
    let at_once = place.run("run -w 0 k -- echo ran");
    assert!(!at_once.is(69, &[]).errors.contains("trying again"), "{at_once:?}");
}

#[test]
fn the_password_is_found_where_it_is_put() {
    let password = "p@ss/w%41rd, with é";
    let server = needs("redis-server", Server::start_blocking(&["--requirepass", password]));
    let place = Place::at(format!("redis://127.0.0.1:{}", server.port()));
    let run = "run -n k true";
    ended(place.leasehold(run).env("LEASEHOLD_PASSWORD", password)).is(0, &[]);
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("password");
    std::fs::write(&file, format!("{password}\n")).unwrap();
    let with_file = format!("--password-file {} {run}", file.display());
    ended(place.leasehold(&with_file).env("LEASEHOLD_PASSWORD", "wrong")).is(0, &[]);
}
