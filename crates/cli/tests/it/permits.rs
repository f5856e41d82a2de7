//! Several commands at a time: `--permits`.

use rustix::process::Signal;

use crate::support::{Place, Running, text};
#[cfg(feature = "redis")]
use leasehold_testkit::{needs, redis::Server, test};

#[test]
fn as_many_commands_run_at_a_time_as_there_are_permits() {
    as_many_run_as_there_are_permits(&Place::file());
}

#[cfg(feature = "redis")]
#[test]
fn as_many_commands_run_at_a_time_as_there_are_permits_on_redis() {
    let server = needs("redis-server", Server::start_blocking(&[]));
    as_many_run_as_there_are_permits(&Place::at(format!("redis://127.0.0.1:{}/0", server.port())));
}

fn as_many_run_as_there_are_permits(place: &Place) {
    let command = ["--permits", "3", "--label", "ada", "k", "--", "sh", "-c", "echo $LEASEHOLD_KEY; exec cat"];
    let mut holders: Vec<_> =
        (0..3).map(|_| Running::start(&mut place.leasehold(&[&["run"][..], &command].concat()))).collect();
    let mut slots: Vec<_> = holders.iter_mut().map(Running::line).collect();
    slots.sort();
    assert_eq!(slots, ["k#00", "k#01", "k#02"]);

    let fourth = ["run", "-n", "--permits", "3", "k", "--", "echo", "ran"];
    let output = place.run(&fourth);
    assert_eq!((output.status.code(), text(&output.stdout).as_str()), (Some(75), ""), "{output:?}");
    assert!(text(&output.stderr).contains("ada") && text(&output.stderr).contains("and 2 more"), "{output:?}");
    assert_eq!(place.code(&["run", "-n", "k", "--", "true"]), 0, "the key itself is another lock");
    let listed = text(&place.run(&["list", "k#"]).stdout);
    assert!(slots.iter().all(|slot| listed.contains(slot)), "{listed}");

    let mut waiter = Running::start(&mut place.leasehold(&[&["run", "--json"][..], &fourth[2..]].concat()));
    assert_eq!(waiter.event("waiting")["holders"].as_array().map(Vec::len), Some(3));
    let freed = holders.remove(1);
    assert_eq!(freed.end().code, Some(0));
    waiter.expect_line("ran");
    assert_eq!(waiter.end().code, Some(0));
    assert_eq!(place.code(&fourth), 0, "a permit is free");
    drop(holders);
}

#[test]
fn a_permit_of_a_program_that_was_killed_is_free_again() {
    let place = Place::file();
    let _kept = place.hold_with(&["--permits", "2"], "k");
    let killed = place.hold_with(&["--permits", "2"], "k");
    killed.signal(Signal::KILL);
    assert_eq!(place.code(&["run", "-w", "60s", "--permits", "2", "k", "--", "true"]), 0);
}

#[test]
fn permits_that_cannot_be_are_64() {
    let place = Place::file();
    for permits in ["0", "33", "-1", "many"] {
        assert_eq!(place.code(&["run", &format!("--permits={permits}"), "k", "--", "true"]), 64, "{permits}");
    }
    assert_eq!(place.code(&["run", "--shared", "--permits", "2", "k", "--", "true"]), 64);
    let long = "k".repeat(251);
    assert_eq!(place.code(&["run", "--permits", "2", &long, "--", "true"]), 64);
}
