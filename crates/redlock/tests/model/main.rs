//! Every behaviour of fenced Redlock with three nodes and two or three attempts, searched breadth first.
//!
//! The adversary executes any request at any node at any later time or never, loses any reply, and drops any lock at
//! any moment: clocks may do what they like. The client proposes any number, and decides by the code of this crate. The rules
//! of this crate hold in all of it, and each rule that is left out must be found missing.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test fails by panicking, and tells its figures")]

#[path = "../../src/majority.rs"]
mod majority;
#[path = "../../src/numbers.rs"]
mod numbers;

mod search;
mod state;

use search::search;
use state::{Forgetting, Rules};

/// Two rounds, without a proposal.
const TWO_ROUNDS: Rules = Rules {
    attempts: 2,
    proposals: 0,
    numbers: 3,
    strict_at_first: true,
    strict: true,
    only_the_counted_confirm: true,
    counting_round: false,
    claims_repeat: false,
    clocks: None,
    forgetting: Forgetting::Never,
};

/// One round where the proposal is taken, else two.
const OURS: Rules = Rules { proposals: 3, numbers: 5, ..TWO_ROUNDS };

/// With clocks, which nodes show by what they refuse, and from which they go on after they forgot.
const WITH_CLOCKS: Rules =
    Rules { proposals: 2, numbers: 2, clocks: Some(2), forgetting: Forgetting::Seeded, ..TWO_ROUNDS };

#[test]
fn two_rounds_hold_whatever_clocks_and_network_do() {
    assert!(search(TWO_ROUNDS).is_ok_and(|states| states > 10_000));
}

#[test]
fn one_round_holds_whatever_is_proposed_and_clocks_and_network_do() {
    assert!(search(OURS).is_ok_and(|states| states > 100_000));
}

/// Hundreds of millions of states: run by `cargo xtask model redlock`.
#[test]
#[ignore = "takes minutes and gigabytes"]
fn one_round_holds_for_three_attempts() {
    assert!(search(Rules { attempts: 3, proposals: 2, numbers: 4, ..OURS }).is_ok());
}

#[test]
fn the_strict_comparison_alone_is_enough() {
    assert!(search(Rules { only_the_counted_confirm: false, ..OURS }).is_ok());
}

#[test]
#[ignore = "takes minutes and gigabytes"]
fn a_claim_may_be_repeated() {
    assert!(search(Rules { claims_repeat: true, proposals: 2, numbers: 3, ..OURS }).is_ok());
}

#[test]
fn a_node_that_forgets_breaks_it_unless_its_marker_tells() {
    for rules in [TWO_ROUNDS, Rules { proposals: 2, numbers: 3, ..OURS }] {
        assert!(search(Rules { forgetting: Forgetting::Unnoticed, ..rules }).is_err());
        assert!(search(Rules { forgetting: Forgetting::Marked, ..rules }).is_ok());
    }
}

/// Tens of millions of states, as above.
#[test]
#[ignore = "takes minutes and gigabytes"]
fn all_nodes_may_forget_if_they_go_on_from_clocks_that_no_number_was_ahead_of() {
    assert!(search(WITH_CLOCKS).is_ok());
}

#[test]
#[ignore = "takes minutes and gigabytes"]
fn a_node_that_is_repaired_goes_on_from_its_clock() {
    assert!(search(Rules { forgetting: Forgetting::Repaired { by_its_clock: true }, ..WITH_CLOCKS }).is_ok());
}

#[test]
fn each_rule_that_is_left_out_is_found_missing() {
    let (lenient, forgetting) =
        (Rules { strict: false, ..TWO_ROUNDS }, |forgetting| Rules { forgetting, ..WITH_CLOCKS });
    for (rule, rules) in [
        ("the comparison is strict in one round", Rules { strict_at_first: false, ..OURS }),
        ("it is in two, or who was not counted confirms nothing", Rules { only_the_counted_confirm: false, ..lenient }),
        ("it is in two where a claim may be repeated", Rules { claims_repeat: true, ..lenient }),
        ("nodes do not count in one round", Rules { counting_round: true, attempts: 3, ..TWO_ROUNDS }),
        ("a node that forgot goes on from its clock", forgetting(Forgetting::Unnoticed)),
        ("it takes no number ahead of its clock", forgetting(Forgetting::SeededOnly)),
        ("it does so when it is repaired, too", forgetting(Forgetting::Repaired { by_its_clock: false })),
    ] {
        assert!(search(rules).is_err(), "not needed: {rule}");
    }
}
