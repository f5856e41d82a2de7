//! What is special about `PostgreSQL`, on private servers. Without one the tests are ignored.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod contention;
mod faults;
mod pooler;
mod settings;
mod sql;
mod standby;

leasehold_testkit::main! {
    @multi_thread settings::every_default_of_the_server_is_right,
    @multi_thread settings::a_database_of_another_encoding_keeps_names_and_texts,
    @multi_thread settings::the_rights_that_the_readme_names_suffice,
    @multi_thread settings::who_owns_the_schema_migrates_without_the_right_to_create_one,
    @multi_thread settings::marks_of_those_who_waited_end_although_the_clock_was_set_back,
    @multi_thread settings::what_is_missing_is_said_and_what_to_do,
    @multi_thread settings::collected_rows_do_not_take_tokens_back,
    @multi_thread settings::tokens_grow_when_the_tables_are_emptied,
    @multi_thread settings::a_grant_waits_for_the_disk_and_a_refusal_does_not,
    @multi_thread contention::batches_over_the_same_keys_are_never_a_deadlock,
    @multi_thread contention::a_renewal_that_meets_the_end_of_a_lease_leaves_one_holder,
    @multi_thread contention::a_row_that_somebody_locks_keeps_nobody_else,
    @multi_thread contention::readers_wait_for_two_writers_at_most,
    @multi_thread faults::backends_that_are_terminated_leave_no_key_locked,
    @multi_thread faults::a_server_that_dies_loses_no_lock_and_keeps_none,
    @multi_thread faults::closing_ends_while_the_server_is_silent,
    @multi_thread faults::a_server_without_connections_left_is_a_transient_fault,
    @multi_thread pooler::locks_work_through_a_pooler_in_transaction_mode,
    @multi_thread pooler::notifications_that_do_not_pass_a_pooler_are_found_out,
    @multi_thread pooler::a_login_that_a_pooler_refuses_is_refused_for_good,
    @multi_thread faults::a_migration_that_another_session_keeps_waiting_ends,
    @multi_thread standby::a_standby_is_refused_and_the_primary_found,
    @multi_thread standby::held_locks_survive_a_switchover,
}
