//! What goes wrong with quorums of Redis servers, on real ones. Each test starts servers of its own; where
//! `redis-server` is not installed, they are ignored.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a test fails by panicking, and tells its figures and why it does not run"
)]

mod attach;
mod batches;
mod bench;
mod clocks;
mod contenders;
mod healing;
mod late;
mod listing;
mod nodes;
mod shut_out;
mod silence;
mod tokens;

leasehold_testkit::main! {
    attach::a_lock_that_too_few_nodes_hand_off_is_nobodys_and_is_given_back,
    attach::a_take_over_that_comes_too_late_releases_what_a_few_nodes_gave,
    attach::a_lock_is_handed_off_while_a_minority_is_silent,
    clocks::the_clock_of_one_node_breaks_neither_exclusion_nor_the_order_of_tokens,
    clocks::doctor_finds_a_clock_that_is_apart_from_the_others_until_it_is_set,
    @multi_thread contenders::ten_contenders_on_one_key_are_all_served,
    contenders::a_split_vote_is_given_back_at_once,
    @multi_thread contenders::contenders_do_not_wait_for_silent_nodes,
    contenders::an_attempt_that_only_silent_nodes_could_help_is_not_waited_for_like_a_lock,
    @multi_thread contenders::what_a_silent_node_has_not_heard_hinders_nobody,
    @multi_thread contenders::a_released_lock_is_free_where_anybody_answers_however_many_wait_for_a_silent_node,
    healing::a_node_that_refuses_to_tell_a_lease_or_a_counter_is_no_source_of_a_repair,
    healing::a_counter_that_is_not_ours_is_neither_copied_nor_overwritten_by_a_repair,
    healing::a_lock_that_never_ends_is_named_and_prevents_a_repair,
    late::claims_that_come_late_keep_a_key_for_as_long_as_they_were_late_and_not_for_their_lease,
    late::a_claim_that_comes_late_to_a_minority_goes_back_once_its_lock_is_released_and_not_before,
    listing::a_release_by_force_that_may_not_signal_says_so,
    listing::a_listing_without_a_right_that_it_needs_is_an_error_and_not_an_empty_one,
    listing::a_listing_of_a_minority_is_an_error_wherever_in_the_order_it_is,
    listing::an_entry_that_is_not_ours_is_shown_where_it_is_in_the_way_and_freed_by_force,
    nodes::one_server_under_two_names_is_refused,
    nodes::a_replica_is_not_a_node_of_its_own,
    nodes::a_node_with_another_password_is_named_and_the_others_serve,
    nodes::a_majority_that_refuses_is_an_error_for_good,
    nodes::a_node_that_came_back_empty_does_not_count_until_it_is_repaired,
    nodes::a_held_key_is_busy_and_not_unavailable_beside_a_node_that_was_reset,
    nodes::a_repair_waits_until_the_leases_that_lost_a_vote_are_over,
    nodes::most_nodes_without_their_data_are_beyond_repair,
    nodes::a_new_deployment_is_set_up_only_when_all_nodes_answer,
    nodes::a_deployment_that_was_set_up_by_half_is_completed,
    nodes::an_entry_of_another_type_is_named_and_left_alone,
    nodes::inspection_tells_which_nodes_are_silent,
    nodes::borrowed_clients_serve_and_are_left_alone,
    nodes::closing_leaves_no_connection,
    nodes::the_least_permissions_are_enough,
    nodes::a_node_that_is_being_repaired_does_not_count,
    nodes::a_key_that_came_late_to_a_node_is_listed_all_the_same,
    shut_out::a_node_whose_password_was_changed_is_outvoted_and_a_majority_of_them_ends_waits,
    silence::two_of_five_stopped_nodes_are_not_waited_for,
    silence::three_of_five_stopped_nodes_are_no_quorum_and_nothing_is_left_behind,
    silence::a_held_lock_outlives_a_minority_and_is_lost_in_time_with_a_majority,
    silence::a_majority_that_was_away_serves_again,
    silence::a_release_wakes_a_waiter_with_a_minority_down,
    silence::a_node_that_is_slow_while_another_comes_back_goes_on_taking_part,
    silence::the_short_limit_of_one_attempt_fails_no_other_on_its_connections,
    tokens::the_late_grant_gives_a_number_twice_only_without_the_strict_comparison,
    tokens::a_slow_node_does_not_confirm_a_number_that_another_has,
    tokens::a_node_takes_a_number_above_its_own_and_not_ahead_of_its_clock,
    tokens::a_token_takes_one_round_unless_counters_are_ahead_of_what_is_proposed,
    tokens::most_counters_have_their_whole_retention_after_each_grant,
    tokens::programs_of_the_first_version_and_of_this_one_stay_away_from_each_others_nodes,
    batches::a_claim_whose_counter_is_none_keeps_no_other_of_its_batch_from_its_lease,
    batches::a_cycle_of_many_costs_a_node_few_calls,
    batches::a_key_that_nodes_refuse_is_refused_alone,
    @multi_thread batches::a_runtime_that_rests_keeps_nobody_waiting,
    clocks::nodes_may_disagree_by_seconds_about_the_time,
    tokens::a_counter_beyond_all_times_is_outvoted_and_refused_only_by_a_majority,
}
