//! Every behaviour of the hand-over inside a process, of so many steps as all its rules take to show, breadth first.
//!
//! The adversary executes any request at any later time, loses any answer, cancels any waiter, ends any guard at any
//! moment, and once lets the store lose the lock. With all rules nothing is broken; each rule that is left out breaks
//! what it is there for. The test `hand_over` has the same rules on the engine itself.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test fails by panicking, and tells its figures")]

mod exclusive;
mod search;
mod shared;

use exclusive::{Property, Rule};
use search::{Found, Machine, search};

/// What holds as long as no rule is dropped; all of this must have happened meanwhile.
fn holds<M: Machine>(least: usize, must_happen: &[&str]) {
    let Found { states, seen, broken } = search::<M>(None);
    println!("holds in {states} states: {seen:#?}");
    assert!(broken.is_none(), "{broken:?}");
    assert!(states > least, "{states}");
    for what in must_happen {
        assert!(seen.contains_key(what), "\"{what}\" never happened: {seen:#?}");
    }
}

/// What is broken the soonest when this rule is dropped.
fn breaks<M: Machine>(rule: M::Rule, expected: M::Property) {
    let Found { states, broken, .. } = search::<M>(Some(rule));
    let Some((property, trace)) = broken else { panic!("{rule:?} is not needed for anything in {states} states") };
    println!("without {rule:?}, {property:?} is broken; seen in {states} states:{trace}");
    assert_eq!(property, expected, "without {rule:?}:{trace}");
}

#[test]
fn all_rules_together_hold() {
    holds::<exclusive::State>(
        10_000,
        &[
            "hands over",
            "releases at the bound",
            "hears that it is not the holder",
            "a lease ends",
            "an answer is lost",
            "a grant comes that goes back",
            "the store loses the lock",
            "is renewed",
        ],
    );
}

#[test]
fn rule_1_a_grant_that_keeps_the_old_number_repeats_a_token() {
    breaks::<exclusive::State>(Rule::NewNumber, Property::Tokens);
}

#[test]
fn rule_2_a_count_that_wraps_repeats_a_token() {
    breaks::<exclusive::State>(Rule::NoWrap, Property::Tokens);
}

#[test]
fn rule_3_a_stale_guard_that_acts_takes_the_lock_from_its_successor() {
    breaks::<exclusive::State>(Rule::OwnGrantOnly, Property::Exclusion);
}

#[test]
fn rule_4_a_lease_that_is_almost_over_is_no_gift() {
    breaks::<exclusive::State>(Rule::Minimum, Property::Birth);
}

#[test]
fn rule_4_a_renewal_of_unknown_outcome_hits_the_successor() {
    breaks::<exclusive::State>(Rule::NoDoubt, Property::Birth);
}

#[test]
fn rule_5_a_claim_before_the_loss_is_told_makes_two_guards() {
    breaks::<exclusive::State>(Rule::LossFirst, Property::Exclusion);
}

#[test]
fn rule_5_a_grant_whose_waiter_left_makes_two_guards_if_it_is_handed_over() {
    breaks::<exclusive::State>(Rule::WantedOnly, Property::Exclusion);
}

#[test]
fn rule_6_a_late_release_of_an_owner_id_that_is_used_again_frees_the_successor() {
    breaks::<exclusive::State>(Rule::NewOwner, Property::Exclusion);
}

#[test]
fn rule_7_without_a_rest_after_the_bound_others_do_not_get_their_turn() {
    breaks::<exclusive::State>(Rule::Rest, Property::Turns);
}

#[test]
fn rule_8_a_waiter_that_is_gone_keeps_what_it_is_given_for_ever() {
    breaks::<exclusive::State>(Rule::SkipGone, Property::NoOrphan);
}

#[test]
fn rule_9_a_successor_with_a_fresh_lease_outlives_the_grant() {
    breaks::<exclusive::State>(Rule::RemainingLease, Property::Exclusion);
}

#[test]
fn readers_that_share_grants_keep_the_promise_of_the_token() {
    holds::<shared::State>(1_000, &["is granted, and another rides", "a guard ends"]);
}

#[test]
fn a_reader_that_came_after_the_claim_must_not_ride() {
    breaks::<shared::State>(shared::Rule::QueuedBefore, shared::Promise);
}

#[test]
fn a_shared_grant_must_not_be_handed_over() {
    breaks::<shared::State>(shared::Rule::NoHandOver, shared::Promise);
}
