//! Locks that outlive the program that took them, and waiting without a lock.

use leasehold_testkit::test;
#[cfg(feature = "redis")]
use leasehold_testkit::{needs, redis::Server};

use crate::support::{Place, Running, text};

#[cfg(feature = "redis")]
#[test]
fn a_lock_is_taken_renewed_and_released_by_three_programs() {
    let server = needs("redis-server", Server::start_blocking(&[]));
    let place = Place::at(format!("redis://127.0.0.1:{}/0", server.port()));
    let taken = place.run(&["acquire", "k", "--ttl", "1h", "--label", "job 7"]);
    let first = text(&taken.stdout).trim().to_owned();
    assert!(taken.status.success() && first.starts_with("leasehold"), "{taken:?}");
    assert!(text(&place.run(&["inspect", "k"]).stdout).contains("job 7"));
    assert_eq!(place.code(&["acquire", "k", "--ttl", "1h", "-n"]), 75);

    let renewed = place.run(&["renew", &first, "--ttl", "2h"]);
    let second = text(&renewed.stdout).trim().to_owned();
    assert!(renewed.status.success() && second != first, "{renewed:?}");
    assert_eq!(place.code(&["run", "-n", "k", "--", "true"]), 75);
    let old = place.run(&["release", &first]);
    assert!(old.status.code() == Some(76) && text(&old.stderr).contains("renewed or released since"), "{old:?}");
    assert_eq!(place.code(&["run", "-n", "k", "--", "true"]), 75);

    let mut release = Running::start(&mut place.leasehold(&["release", "-"]));
    release.type_in(format!("{second}\n").as_bytes());
    assert_eq!(release.end().code, Some(0));
    assert_eq!(place.code(&["run", "-n", "k", "--", "true"]), 0);
    assert_eq!(place.code(&["release", &second]), 76);
    assert_eq!(place.code(&["renew", &second, "--ttl", "1h"]), 76);
}

#[test]
fn where_there_is_no_lease_no_lock_outlives_its_program() {
    let place = Place::file();
    let refused = place.run(&["acquire", "k", "--ttl", "1h"]);
    let told = text(&refused.stderr);
    assert!(refused.status.code() == Some(78) && told.contains("no lock outlives its program here: "), "{refused:?}");
    assert_eq!(place.code(&["acquire", "k"]), 64, "the time has to be said");
    assert_eq!(place.code(&["release", "leasehold2:x"]), 64);
}

#[test]
fn a_program_waits_until_nobody_holds_a_lock() {
    let place = Place::file();
    assert_eq!(place.code(&["wait", "k"]), 0);
    let holder = place.hold("k");
    let busy = place.run(&["wait", "k", "-w", "200ms"]);
    assert!(busy.status.code() == Some(75) && text(&busy.stderr).contains("k is held by "), "{busy:?}");
    let waiter = Running::start(&mut place.leasehold(&["wait", "k"]));
    assert_eq!(holder.end().code, Some(0));
    assert_eq!(waiter.end_by_itself().code, Some(0));
}

#[cfg(feature = "redis")]
#[test]
fn a_job_runs_once_in_a_period_and_again_if_it_fails() {
    let server = needs("redis-server", Server::start_blocking(&[]));
    let place = Place::at(format!("redis://127.0.0.1:{}/0", server.port()));
    let job = |end: &str| place.run(&["run", "--once-per", "1h", "--label", "host 7", "k", "-c", end]);
    assert_eq!(job("exit 3").status.code(), Some(3));
    assert_eq!(job("kill -9 $$").status.code(), Some(137));
    assert_eq!(job("true").status.code(), Some(0));
    let second = job("echo ran");
    let told = text(&second.stderr);
    assert!(second.status.code() == Some(75) && second.stdout.is_empty(), "{second:?}");
    assert!(told.contains("host 7") && told.contains("once per 1 h 0 m"), "{told}");
    assert_eq!(place.code(&["run", "--once-per", "1h", "-E", "0", "k", "--", "false"]), 0);
    let shown = place.run(&["inspect", "k", "--json"]);
    let shown: serde_json::Value = serde_json::from_str(&text(&shown.stdout)).unwrap();
    let left = shown["holders"][0]["remaining_ms"].as_u64().unwrap();
    assert!((3_000_000..=3_600_000).contains(&left), "{shown}");

    // The next one may, once the period is over.
    assert_eq!(place.code(&["run", "--once-per", "1s", "short", "--", "true"]), 0);
    assert_eq!(place.code(&["run", "-n", "short", "--", "true"]), 0, "though a lease is longer than the period");
    // Nothing is left of a period that the command has used up.
    assert_eq!(place.code(&["run", "--once-per", "1s", "long", "-c", "sleep 1.1"]), 0);
    assert_eq!(place.code(&["run", "-n", "long", "--", "true"]), 0);
}

#[test]
fn once_in_a_period_needs_a_store_that_keeps_locks() {
    let place = Place::file();
    let refused = place.run(&["run", "--once-per", "1h", "k", "--", "echo", "ran"]);
    assert!(refused.status.code() == Some(78) && refused.stdout.is_empty(), "{refused:?}");
    for period in ["25h", "0.5", "x"] {
        assert_eq!(place.code(&["run", "--once-per", period, "k", "--", "true"]), 64, "{period}");
    }
    assert_eq!(place.code(&["run", "--once-per", "1h", "--permits", "2", "k", "--", "true"]), 64);
}

#[test]
fn who_knows_flock_finds_its_options() {
    let place = Place::file();
    let said = place.run(&["run", "-x", "--timeout", "5", "k", "-c", "echo $((6 * 7)); exit 4"]);
    assert!(said.status.code() == Some(4) && text(&said.stdout) == "42\n", "{said:?}");
    assert_eq!(place.code(&["run", "k"]), 64);
    assert_eq!(place.code(&["run", "-x", "-s", "k", "--", "true"]), 64);
    assert_eq!(place.code(&["run", "k", "-c", "true", "--", "true"]), 64);
}
