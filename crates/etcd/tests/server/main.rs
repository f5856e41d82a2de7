//! What is special about etcd, on private servers and clusters. Without the program the tests are ignored.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod clients;
mod late;
mod members;
mod settings;
mod waiters;

leasehold_testkit::main! {
    @multi_thread members::locks_outlive_the_death_of_the_leader,
    @multi_thread members::locks_outlive_a_leader_that_moves,
    @multi_thread members::a_client_that_is_cut_off_from_one_server_asks_another,
    @multi_thread members::without_a_majority_the_error_says_so_and_comes_in_time,
    @multi_thread members::closing_ends_while_the_servers_are_silent,
    @multi_thread waiters::a_caller_that_is_not_polled_while_it_connects_stalls_nobody,
    @multi_thread waiters::a_waiter_asks_nothing_when_others_wait_for_other_keys,
    @multi_thread waiters::a_place_that_came_late_has_the_lease_that_its_waiter_is_told,
    @multi_thread late::a_renewal_that_was_given_up_replaces_no_lease_once_a_later_one_was_answered,
    @multi_thread late::a_forced_release_in_two_rounds_names_all,
    @multi_thread settings::a_user_needs_the_rights_that_the_readme_names_and_no_more,
    @multi_thread settings::tokens_grow_after_all_data_was_lost,
    @multi_thread settings::a_waiter_is_woken_although_the_history_was_compacted,
    @multi_thread settings::a_release_without_ownership_changes_nothing,
    @multi_thread settings::a_key_that_somebody_else_wrote_is_named,
    @multi_thread settings::no_leases_are_left_of_claims_that_are_refused,
    @multi_thread settings::nothing_is_left_of_a_lock_that_was_released,
}
