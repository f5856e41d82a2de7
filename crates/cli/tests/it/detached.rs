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
    assert_eq!(place.code(&["release", &first]), 76, "the old text is of no use");
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
