//! Who holds a key beside another, and tokens that are given twice or grow smaller.

use leasehold_chaos::checker::Rule;
use leasehold_testkit::test;

use crate::judge::{differ, judged};
use crate::story::good;

#[test]
fn a_second_writer_is_found() {
    differ(
        &[Rule::Overlap],
        "c1 10 call k
         c1 20 granted 7
        -c1 40 held
        +c1 60 held
         c2 30 call k
         c2 50 granted 8
         c2 70 held
         c2 80 releasing
         c2 90 released",
    );
}

#[test]
fn a_release_that_says_that_the_lock_was_held_counts_and_one_that_says_that_it_was_lost_does_not() {
    differ(
        &[Rule::Overlap],
        "c1 10 call k
         c1 20 granted 7
         c2 30 call k
         c2 50 granted 8
         c2 70 held
         c1 60 releasing
        -c1 65 gone
        +c1 65 released",
    );
}

#[test]
fn a_process_that_was_stopped_claims_nothing_of_that_time() {
    let story = "c1 10 call k
                 c1 900 granted 7
                 c1 901 releasing
                 c1 902 gone
                 c2 30 call k
                 c2 50 granted 8
                 c2 950 held";
    assert!(judged(&good(story)).passed());
}

#[test]
fn a_writer_beside_the_first_of_several_readers_is_found() {
    differ(
        &[Rule::ReaderBesideWriter],
        "c1 10 call k shared
         c1 20 granted 7
        -c1 60 held
        +c1 90 held
         c2 10 call k shared
         c2 30 granted 8
         c2 40 held
         c3 50 call k
         c3 70 granted 9
         c3 80 held",
    );
}

#[test]
fn a_reader_beside_a_writer_is_found_and_a_reader_of_another_key_is_none() {
    differ(
        &[Rule::ReaderBesideWriter],
        "c1 10 call k
         c1 20 granted 7
         c1 60 held
        -c2 10 call other shared
        +c2 10 call k shared
         c2 30 granted 8
         c2 40 held",
    );
}

#[test]
fn a_token_that_two_clients_have_is_found() {
    differ(
        &[Rule::DuplicateToken],
        "c1 10 call k
         c1 20 granted 7
         c1 30 releasing
         c1 35 released
         c2 15 call k
        -c2 50 granted 8
        +c2 50 granted 7",
    );
}

#[test]
fn the_levels_of_a_session_have_one_token_and_its_next_lease_another() {
    differ(
        &[Rule::DuplicateToken],
        "c1 10 call k session=1
         c1 20 granted 7
         c1.1 30 call k session=1
         c1.1 40 granted 7
         c1 50 releasing
         c1 55 released
         c1.1 60 held
         c1.1 70 releasing
         c1.1 75 released
         c1 1080 call k session=1
        -c1 1090 granted 8
        +c1 1090 granted 7",
    );
}

#[test]
fn a_session_joins_no_lease_again_that_another_followed() {
    differ(
        &[Rule::DuplicateToken, Rule::BackwardToken],
        "c1 10 call k session=1
         c1 20 granted 7
         c1 50 releasing
         c2 55 call k session=1
         c2 60 granted 8
         c2 65 releasing
         c2 66 released
         c1 80 call k session=1
        -c1 90 granted 9
        +c1 90 granted 7",
    );
}

#[test]
fn two_sessions_of_a_client_exclude_each_other() {
    differ(
        &[Rule::Overlap],
        "c1 10 call k session=1
         c1 20 granted 7
        -c1 30 held
        +c1 60 held
         c1.1 30 call k session=2
         c1.1 50 granted 8
         c1.1 70 held",
    );
}

#[test]
fn a_text_that_is_attached_twice_is_found() {
    differ(
        &[Rule::StaleAttach],
        "c1 10 call k
         c1 20 granted 7
         c1 30 detached
         c2 40 attach k
         c2 50 granted 7
         c2 60 held
         c3 40 attach k
        -c3 90 refused lost
        +c3 90 granted 7",
    );
}

#[test]
fn a_token_that_was_attached_without_a_text_is_found() {
    differ(
        &[Rule::StaleAttach],
        "c1 10 call k
         c1 20 granted 7
        -c1 30 detached
        +c1 30 held
         c2 40 attach k
         c2 50 granted 7",
    );
}

#[test]
fn who_detached_a_lock_does_not_hold_it_beside_who_attached_it() {
    differ(
        &[Rule::Overlap, Rule::HeldAfterEnd],
        "c1 10 call k
         c1 20 granted 7
         c1 30 detached
        +c1 60 held
         c2 40 attach k
         c2 50 granted 7
         c2 70 held",
    );
}

#[test]
fn a_token_that_is_smaller_than_one_long_before_is_found() {
    differ(
        &[Rule::BackwardToken],
        "c1 10 call k
         c1 20 granted 9
         c1 30 releasing
         c1 40 released
         c2 15 call k
         c2 60 granted 5
         c2 70 held
        -c3 15 call k
        +c3 25 call k
         c3 80 granted 8
         c3 90 held",
    );
}

#[test]
fn a_lock_that_is_attached_after_a_later_grant_is_found() {
    differ(
        &[Rule::StaleAttach],
        "c1 10 call k
         c1 20 granted 7
         c1 30 detached
         c2 40 call k
         c2 50 granted 8
         c2 60 held
        -c3 45 attach k
        +c3 70 attach k
         c3 80 granted 7",
    );
}
