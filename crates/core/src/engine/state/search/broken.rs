//! Each rule is there for something: left out, the search finds what breaks.

use super::super::rules::{LEFT_OUT, Rule};
use super::configs;
use super::explore::explore;
use super::world::{Config, Property};

/// What breaks the soonest without this rule.
fn breaks(rule: Rule, config: &'static Config, expected: Property) {
    LEFT_OUT.set(Some(rule));
    let found = explore(config, 200_000, 1);
    LEFT_OUT.set(None);
    let Some((property, what)) = found.broken else {
        panic!("{rule:?} is not needed for anything in {} states", found.states)
    };
    println!("without {rule:?}, seen in {} states, {property:?} is broken: {what}", found.states);
    assert_eq!(property, expected, "without {rule:?}: {what}");
}

macro_rules! each {
    ($($name:ident: $rule:ident in $config:ident breaks $property:ident;)*) => {$(
        #[test]
        fn $name() {
            breaks(Rule::$rule, &configs::$config, Property::$property);
        }
    )*};
}

each! {
    a_grant_that_nobody_wants_is_given_back: Compensate in EXCLUSIVE breaks Left;
    who_goes_gives_up_its_place: GiveUp in QUEUE breaks Left;
    a_caller_that_is_not_polled_keeps_nobody: NotPolled in PAIR breaks Liveness;
    an_offer_that_is_not_taken_goes_on: Untaken in PAIR breaks Liveness;
    the_end_of_a_lease_is_told: TellEnd in ALONE breaks OneEnd;
    an_attached_lease_has_an_owner_of_its_own: OwnerOfItsOwn in ATTACHES_IN_PEACE breaks Exclusion;
    a_writer_that_is_not_downgraded_goes_back: WriterGoesBack in DOWNGRADES breaks Left;
    what_is_taken_over_for_nobody_goes_back: TakenOverGoesBack in ATTACHES_IN_PEACE breaks Left;
    a_late_message_is_no_grant: LaterEpoch in RIVALS_IN_LINE breaks Exclusion;
    an_answer_after_the_message_is_of_its_lease: AfterMessage in RIVALS_IN_LINE breaks Structure;
    a_release_by_force_ends_what_it_evicted: ForcedOnly in FORCED breaks Left;
    a_lease_counts_from_the_first_request: CountsFrom in RIVALS_IN_LINE breaks Exclusion;
    a_late_answer_does_not_shorten: NeverShorter in RENEWS breaks OneEnd;
    after_close_no_guard_is_born: ClosedForAll in CLOSED breaks Close;
    a_hand_off_counts_up: NewNumber in PAIR breaks Tokens;
    the_count_has_a_bound: Bound in LINE breaks Tokens;
    a_guard_that_is_over_does_nothing: OwnGuardOnly in PAIR breaks Structure;
    a_lease_that_is_almost_over_is_no_gift: Settled in PAIR breaks Birth;
    a_renewal_in_doubt_hits_no_successor: NoDoubt in PAIR breaks Birth;
    a_lease_that_ran_out_is_lost_first: LossFirst in PAIR breaks Liveness;
    an_heir_asked_for_just_that: SameRequest in WISHES breaks Birth;
    an_owner_id_is_used_once: NewOwner in PAIR breaks Exclusion;
    after_the_bound_others_go_first: YieldAfterBound in LINE breaks Turns;
    who_is_gone_is_passed_over: SkipGone in EXCLUSIVE breaks Left;
    a_successor_gets_what_is_left: WhatIsLeft in PAIR breaks Exclusion;
    a_reader_who_came_later_shares_nothing: CameBefore in READERS breaks Tokens;
    a_claim_made_again_is_as_old_as_the_first: FirstAsked in READERS_IN_LINE breaks Tokens;
    a_shared_lease_is_not_handed_off: NotShared in READERS breaks Tokens;
    nothing_fresh_begins_under_a_lost_guard: LostUnder in SESSION breaks Birth;
    a_session_gives_back_before_it_claims: GivesBack in SESSION breaks Tokens;
    a_process_gives_back_before_it_claims: GivesBack in TWO_PROCESSES breaks Turns;
    a_session_does_not_join_what_it_lost: LostEpoch in LEVEL_LEFT breaks Tokens;
    of_two_leases_the_older_is_lost: OlderIsLost in READER_AND_WRITER breaks Structure;
}
