//! Locks that outlive the program that took them, and waiting without a lock.

use leasehold_testkit::test;

use crate::support::{Place, redis};

#[test]
fn a_lock_is_taken_renewed_and_released_by_three_programs() {
    let (_server, place) = redis("");
    let taken = place.run("acquire k --ttl 1h --label 'job 7'");
    let first = taken.is(0, &[]).output.trim();
    assert!(first.starts_with("leasehold"), "{taken:?}");
    place.run("inspect k").is(0, &["job 7"]);
    assert_eq!(place.code("acquire k --ttl 1h -n"), 75);

    let renewed = place.run(&["renew", first, "--ttl", "2h"]);
    let second = renewed.is(0, &[]).output.trim();
    assert!(second != first && !place.is_free("k"));
    place.run(&["release", first]).is(76, &["renewed or released since"]);
    assert!(!place.is_free("k"));

    let mut release = place.start("release -");
    release.type_in(format!("{second}\n"));
    release.end().is(0, &[]);
    assert!(place.is_free("k"));
    place.run(&["release", second]).is(76, &[]);
    place.run(&["renew", second, "--ttl", "1h"]).is(76, &[]);
}

#[test]
fn where_there_is_no_lease_no_lock_outlives_its_program() {
    for args in ["acquire k --ttl 1h", "run --once-per 1h k -- echo ran"] {
        Place::file().run(args).is(78, &["no lock outlives its program here: "]).prints("");
    }
}

#[test]
fn a_program_waits_until_nobody_holds_a_lock() {
    let place = Place::file();
    assert_eq!(place.code("wait k"), 0);
    let holder = place.hold("k");
    place.run("wait k -w 200ms").is(75, &["k is held by "]);
    let waiter = place.start("wait k");
    holder.end().is(0, &[]);
    waiter.end_by_itself().is(0, &[]);
}

#[test]
fn a_job_runs_once_in_a_period_and_again_if_it_fails() {
    let (_server, place) = redis("");
    let job = |end: &str| place.run(&["run", "--once-per", "1h", "--label", "host 7", "k", "-c", end]);
    job("exit 3").is(3, &[]);
    job("kill -9 $$").is(137, &[]);
    job("true").is(0, &[]);
    job("echo ran").is(75, &["host 7", "once per 1 h 0 m"]).prints("");
    assert_eq!(place.code("run --once-per 1h -E 0 k false"), 0);
    let shown = place.inspect("k");
    let left = shown["holders"][0]["remaining_ms"].as_u64().unwrap();
    assert!((3_000_000..=3_600_000).contains(&left), "{shown}");

    // The next one may, once the period is over.
    assert_eq!(place.code("run --once-per 1s short true"), 0);
    assert!(place.is_free("short"), "though a lease is longer than the period");
    // Nothing is left of a period that the command has used up.
    assert_eq!(place.code("run --once-per 1s long sleep 1.1"), 0);
    assert!(place.is_free("long"));
}
