//! Keys that nobody holds and nobody gets.

use leasehold_testkit::test;
use std::fmt::Write as _;

use leasehold_chaos::checker::Rule;

use crate::judge::{differ, judged};
use crate::story::good;

/// Twenty-one holders, each of whom gives the key back as `gives_back` says while another waits, who has it `after` ms later.
fn hand_overs(gives_back: &str, after: u64) -> String {
    let mut story = String::from("c1 5 call k\nc1 10 granted 1\n");
    for turn in 1..22 {
        let (at, next) = (turn * 2000, turn + 1);
        let gives_back = gives_back.replace("WHO", &format!("c{turn} {at}"));
        let _ = writeln!(story, "c{next} {} call k\n{gives_back}\nc{next} {} granted {next}", at - 500, at + after);
    }
    story + "c22 44000 held"
}

#[test]
fn keys_that_are_free_when_their_lease_ends_and_not_when_they_are_given_back_are_found() {
    for gives_back in ["WHO releasing\nWHO released", "WHO releasing"] {
        assert!(judged(&good(&hand_overs(gives_back, 500))).passed());
        let verdict = judged(&good(&hand_overs(gives_back, 501)));
        assert_eq!(verdict.broken.keys().collect::<Vec<_>>(), [&Rule::SlowHandOver], "{gives_back}");
    }
    // Nobody knows when the store learns of these.
    for gives_back in ["WHO lost", "WHO releasing\nWHO failed indeterminate", "WHO detached"] {
        assert!(judged(&good(&hand_overs(gives_back, 990))).passed(), "{gives_back}");
    }
}

#[test]
fn a_key_that_a_call_took_with_it_when_it_was_given_up_is_found() {
    differ(
        &[Rule::Stalled],
        "c1 5 call k
         c1 10 granted 1
         c2 20 call k wait=90000
         c1 90 releasing
         c1 99 released
         c2 110 refused cancelled
         c3 120 call k wait=3000
         c3 3120 refused timed_out
        -c4 3200 call k wait=0
        -c4 3210 granted 8
        -c4 3220 releasing
        -c4 3230 released
         c3 3300 call k wait=3000
         c3 6300 refused timed_out
         c4 9000 call k
         c4 9010 granted 9",
    );
}

#[test]
fn who_may_hold_a_key_without_knowing_it_makes_no_gap_and_a_fault_is_no_calm() {
    for excuse in [
        "nemesis 200 begins sigstop c5\nc5 150 call k\nnemesis 8000 ends sigstop c5\nc5 8001 refused timed_out",
        "nemesis 200 begins silence server=s\nnemesis 5500 ends silence server=s",
        "nemesis 200 begins silence server=s\nnemesis 900 ends silence server=s\n\
         nemesis 1000 begins silence server=t\nnemesis 2200 ends silence server=t",
    ] {
        let story = format!(
            "c1 5 call k\nc1 10 granted 1\nc1 90 releasing\nc1 99 released\nc3 120 call k wait=8000\n{excuse}\n\
             c3 8110 refused timed_out\nc4 9000 call k\nc4 9010 granted 9"
        );
        assert!(judged(&good(&story)).passed(), "{excuse}: {:?}", judged(&good(&story)).violations);
    }
}
