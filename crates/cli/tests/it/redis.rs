//! The same on a real Redis, if this machine has one.

use std::process::Command;
use std::time::Duration;

use leasehold::Clock;
use leasehold_testkit::launch::free_port;
use leasehold_testkit::redis::Server;
use leasehold_testkit::{eventually_some, needs, test};
use rustix::process::Signal;
use serde_json::Value;

use crate::support::{Place, Running, text};

fn place(server: &Server) -> Place {
    Place::at(format!("redis://127.0.0.1:{}/0", server.port()))
}

#[test]
fn a_held_key_exits_with_75_and_a_free_one_runs_the_command() {
    let server = needs("redis-server", Server::start_blocking(&[]));
    let place = place(&server);
    let holder = place.hold_with(&["--reason", "nightly", "--label", "ada"], "k");
    let output = place.run(&["run", "-n", "k", "--", "true"]);
    assert_eq!(output.status.code(), Some(75), "{output:?}");
    assert!(text(&output.stderr).contains("ada (nightly)"), "{output:?}");
    assert_eq!(holder.end().code, Some(0));
    let output = place.run(&["run", "-n", "k", "--", "sh", "-c", "echo $LEASEHOLD_EXPIRES_IN_MS"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let expires: u64 = text(&output.stdout).trim().parse().unwrap();
    assert!((1..=30_000).contains(&expires), "{expires}");
}

#[test]
fn who_waits_is_counted_and_how_long_it_is_held_is_shown() {
    let server = needs("redis-server", Server::start_blocking(&[]));
    let place = place(&server);
    let holder = place.hold("k");
    let waiters: Vec<_> =
        (0..2).map(|_| Running::start(&mut place.leasehold(&["run", "-w", "60s", "k", "--", "true"]))).collect();
    let seen = |command: &str| serde_json::from_slice::<Value>(&place.run(&[command, "--json", "k"]).stdout).unwrap();
    for command in ["inspect", "list"] {
        let held = || Some(seen(command)).filter(|held| held["waiters"] == 2);
        let held = eventually_some("both are counted", held);
        let held_for = held["holders"][0]["held_for_ms"].as_u64().unwrap();
        assert!((1..600_000).contains(&held_for), "the server is on this machine, and has its clock: {held}");
    }
    let table = text(&place.run(&["list"]).stdout);
    let heading: Vec<_> = table.lines().next().unwrap().split_whitespace().collect();
    assert_eq!(heading[4..], ["HELD", "LEFT", "WAITING", "TOKEN"]);
    assert!(table.lines().nth(1).unwrap().contains(" 2 "), "{table}");
    drop((waiters, holder));
}

#[test]
fn the_next_holder_gets_the_key_within_the_lease_when_the_holder_is_killed() {
    let server = needs("redis-server", Server::start_blocking(&[]));
    let place = place(&server);
    let mut holder = place.hold_with(&["--ttl", "1s"], "k");
    holder.signal(Signal::KILL);
    if cfg!(target_os = "linux") {
        assert_eq!(holder.line(), "", "its command dies with it");
    }
    assert_eq!(place.code(&["run", "-w", "60s", "k", "--", "true"]), 0);
}

#[test]
fn a_holder_that_was_stopped_past_its_lease_kills_its_command_when_it_wakes_up() {
    let server = needs("redis-server", Server::start_blocking(&[]));
    let place = place(&server);
    let print = ["--", "sh", "-c", "echo $LEASEHOLD_TOKEN; exec cat"];
    let args = [&["run", "--json", "--ttl", "500ms", "k"][..], &print].concat();
    let mut first = Running::start(&mut place.leasehold(&args));
    let token: u64 = first.line().parse().unwrap();
    first.signal(Signal::STOP);
    let mut second = Running::start(&mut place.leasehold(&[&["run", "k"][..], &print].concat()));
    let larger: u64 = second.line().parse().unwrap();
    assert!(larger > token, "{larger} must be larger than {token}");
    first.signal(Signal::CONT);
    assert_eq!(first.event("lost")["action"], "kill", "past the deadline another may hold it");
    assert_eq!(first.event("exited")["signal"], Signal::KILL.as_raw());
    assert_eq!(first.end_by_itself().code, Some(76));
    assert_eq!(place.code(&["run", "-n", "k", "--", "true"]), 75, "the second still holds it");
    assert_eq!(second.end().code, Some(0));
}

#[test]
fn a_holder_whose_server_dies_loses_its_lock_on_time() {
    let server = needs("redis-server", Server::start_blocking(&[]));
    let place = place(&server);
    let mut holder = place.hold_with(&["--json", "--ttl", "1s"], "k");
    drop(server);
    let lost = holder.event("lost");
    assert_eq!((&lost["reason"], &lost["action"]), (&"unreachable".into(), &"term".into()));
    assert!(lost["left_ms"].as_u64().unwrap() > 0, "it is told before it is lost: {lost}");
    assert_eq!(holder.end_by_itself().code, Some(76));
}

#[test]
fn a_short_first_lease_out_of_the_store_queue_does_not_end_the_command() {
    let server = needs("redis-server", Server::start_blocking(&[]));
    let place = place(&server);
    let mut holder = place.hold("k");
    let next = ["run", "--json", "--kill-after", "1h", "k", "--", "sh", "-c", "sleep 2; echo whole"];
    let mut next = Running::start(&mut place.leasehold(&next));
    next.event("waiting");
    holder.close_input();
    let ended = next.end_by_itself();
    assert_eq!((ended.code, ended.output.as_str()), (Some(0), "whole\n"), "{ended:?}");
}

#[test]
fn a_signal_while_it_waits_leaves_nothing_behind() {
    let server = needs("redis-server", Server::start_blocking(&[]));
    let place = place(&server);
    let mut holder = place.hold("k");
    let mut waiter = Running::start(&mut place.leasehold(&["run", "--json", "k", "--", "echo", "ran"]));
    waiter.event("waiting");
    waiter.signal(Signal::INT);
    assert_eq!(waiter.end_by_itself().code, Some(130));
    holder.close_input();
    assert_eq!(holder.end().code, Some(0));
    assert_eq!(place.code(&["inspect", "-e", "k"]), 1);
}

#[test]
fn a_server_that_starts_within_the_wait_is_waited_for() {
    let mut server = needs("redis-server", Server::start_blocking(&[]));
    let place = place(&server);
    server.kill();
    let waits = [&["-w", "60s"][..], &[], &["--restart"]];
    let mut runs = waits.map(|wait| {
        let key = format!("k{}", wait.concat());
        let command = [&key, "--", "sh", "-c", "echo ran; exec cat"];
        let mut run = Running::start(&mut place.leasehold(&[&["run", "--json"], wait, &command].concat()));
        let warning = run.event("warning").to_string();
        assert!(warning.contains("trying again"), "{wait:?}: {warning}");
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
    let output = place.run(&["run", "-w", "1s", "k", "--", "echo", "ran"]);
    assert_eq!((output.status.code(), text(&output.stdout).as_str()), (Some(69), ""), "{output:?}");
    let waited = clock.now().since(started);
    assert!(waited >= Duration::from_secs(1), "it gave up after {waited:?}");
    assert_eq!(text(&output.stderr).matches("trying again").count(), 1, "{output:?}");
    for at_once in [&["-n"][..], &["-w", "0"]] {
        let output = place.run(&[&["run"], at_once, &["k", "--", "echo", "ran"]].concat());
        assert_eq!(output.status.code(), Some(69), "{output:?}");
        assert!(!text(&output.stderr).contains("trying again"), "{output:?}");
    }
}

#[test]
fn a_server_that_is_down_exits_with_69_or_the_chosen_code() {
    let port = free_port().unwrap();
    let place = Place::at(format!("redis://127.0.0.1:{port}"));
    for (options, code) in [(&["-n"][..], 69), (&["-n", "--unavailable-exit-code", "5"], 5)] {
        let output = place.run(&[&["run"], options, &["k", "--", "echo", "ran"]].concat());
        assert_eq!(output.status.code(), Some(code), "{output:?}");
        assert_eq!(text(&output.stdout), "");
        assert!(text(&output.stderr).contains("is the server running"), "{output:?}");
    }
}

#[test]
fn a_wrong_password_is_78_and_the_right_one_is_found_where_it_is_put() {
    let password = "p@ss/w%41rd, with é";
    let server = needs("redis-server", Server::start_blocking(&["--requirepass", password]));
    let run = ["run", "-n", "k", "--", "true"];
    let place = place(&server);
    assert_eq!(place.code(&run), 78, "none");
    let code = |command: &mut Command| command.output().unwrap().status.code();
    assert_eq!(code(place.leasehold(&run).env("LEASEHOLD_PASSWORD", "wrong")), Some(78));
    assert_eq!(code(place.leasehold(&run).env("LEASEHOLD_PASSWORD", password)), Some(0));
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("password");
    std::fs::write(&file, format!("{password}\n")).unwrap();
    let with_file = [&["--password-file", file.to_str().unwrap()], &run[..]].concat();
    assert_eq!(code(place.leasehold(&with_file).env("LEASEHOLD_PASSWORD", "wrong")), Some(0));
}

#[test]
fn a_reader_exits_with_78_on_a_store_without_readers() {
    let server = needs("redis-server", Server::start_blocking(&[]));
    let output = place(&server).run(&["run", "--shared", "k", "--", "true"]);
    assert_eq!(output.status.code(), Some(78), "{output:?}");
    assert!(text(&output.stderr).contains("leasehold backends"), "{output:?}");
}
