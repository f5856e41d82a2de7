//! What never came to an end, or too late.

use leasehold_testkit::test;
use std::fmt::Write as _;

use leasehold_chaos::checker::Rule;

use crate::judge::{differ, judged};
use crate::story::good;

#[test]
fn a_guard_that_is_held_after_its_loss_is_found() {
    differ(
        &[Rule::HeldAfterEnd],
        "c1 10 call k
         c1 20 granted 7
         c1 30 held
         c1 40 lost
        +c1 50 held",
    );
}

#[test]
fn a_call_that_never_returned_is_found_unless_its_client_was_killed() {
    differ(
        &[Rule::Unresolved],
        "c1 10 call k
         c1.1 10 call other
         c1.1 15 granted 3
         nemesis 20 begins sigkill c1
         nemesis 30 ends sigkill c1
        +c1.1 40 held
         c2 50 call k
         c2 60 granted 8
         c3 50 call other
         c3 60 granted 8",
    );
}

#[test]
fn a_key_that_was_never_granted_after_an_unknown_outcome_is_found() {
    for unknown in ["refused indeterminate", "granted 7\nc1 21 releasing\nc1 22 failed indeterminate"] {
        let story = "c1 10 call k
                     c1 20 UNKNOWN
                     c2 60 call k shared
                    -c2 70 granted 9
                    +c2 70 refused timed_out";
        differ(&[Rule::Unresolved], &story.replace("UNKNOWN", unknown));
    }
}

#[test]
fn a_key_that_was_never_granted_after_its_holder_was_killed_is_found() {
    differ(
        &[Rule::Unresolved],
        "c1 10 call k shared
         c1 20 granted 7
         nemesis 20 begins sigkill c1
         nemesis 30 ends sigkill c1
         c2 60 call k shared
         c2 70 granted 9
         c3 65 call k
        -c3 90 granted 10
        +c3 90 refused timed_out",
    );
}

#[test]
fn a_take_over_that_is_later_than_the_lease_and_the_limit_is_found() {
    differ(
        &[Rule::SlowTakeOver],
        "c1 10 call k
         c1 20 granted 7 ttl=2000
         c1 500 held
         nemesis 600 begins sigkill c1
         nemesis 610 ends sigkill c1
         c3 400 call k
        -c3 450 refused timed_out
        +c3 2600 refused timed_out
         c2 1000 call k
        -c2 3250 granted 8
        +c2 3251 granted 8",
    );
}

#[test]
fn a_take_over_counts_from_when_the_key_was_asked_for_and_not_while_the_server_is_silent() {
    for excuse in
        ["c2 8999 call k", "c2 5200 call k\nnemesis 700 begins silence server=s\nnemesis 800 ends silence server=s"]
    {
        let story = "c1 10 call k
                     c1 20 granted 7 ttl=2000
                     nemesis 600 begins sigkill c1
                     nemesis 610 ends sigkill c1
                     EXCUSE
                     c2 9000 granted 8";
        assert!(judged(&good(&story.replace("EXCUSE", excuse))).passed());
    }
}

#[test]
fn an_answer_after_the_wait_limit_is_found_unless_its_client_was_stopped() {
    differ(
        &[Rule::LateAnswer],
        "c1 10 call k wait=100
        -c1 160 refused timed_out
        +c1 161 refused timed_out
         c2 10 call k wait=100
         nemesis 20 begins sigstop c2
         nemesis 900 ends sigstop c2
         c2 901 refused timed_out",
    );
}

#[test]
fn a_loss_that_is_noticed_late_is_found_unless_its_client_was_stopped() {
    differ(
        &[Rule::LateLoss],
        "c1 10 call k
         c1 20 granted 7
        -c1 900 lost late=10
        +c1 900 lost late=11
         c2 10 call other
         c2 20 granted 7
         c2 990 lost late=99 resumed",
    );
}

#[test]
fn a_release_that_says_held_after_a_loss_or_a_detach_is_found() {
    for ended in ["lost", "detached"] {
        let story = "c1 10 call k
                     c1 20 granted 7
                     c1 29 held
                     c1 30 ENDED
                     c1 35 releasing
                    +c1 36 released
                    -c1 36 gone";
        differ(&[Rule::HeldAfterEnd], &story.replace("ENDED", ended));
    }
}

#[test]
fn what_a_killed_client_had_dropped_before_is_no_take_over() {
    let mut story = String::new();
    for grant in 1..200 {
        let at = 10 * grant;
        let _ = writeln!(story, "c1 {at} call k\nc1 {} granted {grant}\nc1 {} releasing", at + 1, at + 2);
    }
    story += "c1 3000 call k\nc1 3001 granted 900 ttl=1500\nc1 3010 held\nnemesis 3011 begins sigkill c1\n\
              nemesis 3012 ends sigkill c1\nc2 3020 call k\nc2 5600 granted 901";
    let verdict = judged(&good(&story));
    assert_eq!((verdict.figures.take_overs, verdict.figures.takeover_p99_ms), (1, Some(2580)));
    assert_eq!(verdict.broken.keys().collect::<Vec<_>>(), [&Rule::SlowTakeOver]);
}

#[test]
fn calls_that_were_answered_in_time_do_not_hide_those_that_were_late() {
    let mut story = String::new();
    for call in 1..200 {
        let at = 10 * call;
        let _ = writeln!(
            story,
            "c1 {at} call k wait=100\nc1 {0} granted {call}\nc1 {0} releasing\nc1 {0} released",
            at + 1
        );
    }
    story += "c1 3000 call k wait=100\nc1 3151 refused timed_out\nc1 3160 call k\nc1 3161 granted 900";
    let verdict = judged(&good(&story));
    assert_eq!(verdict.broken.keys().collect::<Vec<_>>(), [&Rule::LateAnswer]);
}

#[test]
fn a_loss_that_reaches_one_level_of_a_session_only_is_found() {
    differ(
        &[Rule::HeldAfterEnd],
        "c1 10 call k session=1
         c1 20 granted 7
         c1.1 30 call k session=1
         c1.1 40 granted 7
         c1.1 50 lost
        -c1 60 lost
        +c1 60 held",
    );
}

#[test]
fn a_session_that_joins_what_it_lost_is_found() {
    differ(
        &[Rule::HeldAfterEnd],
        "c1 10 call k session=1
         c1 20 granted 7
         c1 30 lost
         c1 40 call k session=1
        -c1 50 granted 8
        +c1 50 granted 7",
    );
}

#[test]
fn a_level_that_its_own_cap_ended_leaves_the_others_and_may_be_taken_again() {
    let story = "c1 10 call k session=1
                 c1 20 granted 7
                 c1.1 30 call k session=1
                 c1.1 40 granted 7
                 c1.1 50 lost capped
                 c1 60 held
                 c1.1 70 call k session=1
                 c1.1 80 granted 7
                 c1.1 90 held";
    assert!(judged(&good(story)).passed());
}
