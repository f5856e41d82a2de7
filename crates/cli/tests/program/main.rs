//! Runs the real program, as people and scripts do.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "all of it is test")]

mod admin;
mod bench;
mod command;
mod doctor;
mod errors;
mod holding;
mod json;
mod loss;
#[cfg(any(feature = "redis", feature = "mysql"))]
mod partition;
mod permits;
#[cfg(all(feature = "watch", feature = "redis", target_os = "linux"))]
mod picture;
#[cfg(feature = "postgres")]
mod postgres;
#[cfg(feature = "redis")]
mod redis;
mod restart;
mod secrets;
#[cfg(any(feature = "postgres", feature = "redis", feature = "etcd"))]
mod servers_with_readers;
mod signals;
mod support;
mod terminal;
mod tutorial;
mod usage;
#[cfg(all(feature = "watch", target_os = "linux"))]
mod watch;
#[cfg(all(feature = "watch", feature = "redis", target_os = "linux"))]
mod watch_lines;
#[cfg(all(feature = "watch", feature = "redis", target_os = "linux"))]
mod watch_pictures;

leasehold_testkit::main! {
    admin::inspect_tells_who_holds_a_key_and_what_for,
    admin::who_holds_it_is_user_host_and_process_unless_told_otherwise,
    admin::list_shows_the_held_keys_with_a_prefix_in_order,
    admin::force_release_says_whom_it_took_it_from,
    admin::force_release_with_a_token_spares_every_other_grant,
    admin::without_a_default_every_command_that_names_no_store_is_64,
    admin::backends_shows_every_store_that_was_built_in,
    admin::a_reader_that_has_seen_enough_is_no_failure,
    admin::a_store_without_tables_or_nodes_has_nothing_to_look_after,
    admin::a_session_is_for_stores_that_have_sessions,
    bench::it_measures_files_for_about_as_long_as_it_is_told_and_leaves_no_lock,
    bench::an_interrupt_ends_it_and_leaves_no_lock,
    bench::it_advises_a_lease_for_redis_and_a_silent_store_is_69,
    command::the_exit_code_of_the_command_is_passed_through,
    command::a_command_that_a_signal_ended_gives_128_and_its_number,
    command::a_command_that_cannot_run_gives_127_or_126_and_frees_the_key,
    command::the_command_has_its_own_grant_in_its_environment_and_no_other,
    command::input_and_output_are_the_commands,
    command::options_of_the_command_are_left_to_it,
    doctor::it_names_the_store_and_what_it_found_to_people_too,
    doctor::a_directory_that_others_can_write_to_is_an_error_and_chmod_the_cure,
    doctor::etcd::members_that_are_too_few_out_of_reach_or_without_a_vote_are_warnings,
    doctor::etcd::a_full_database_a_missing_right_and_foreign_keys_are_found_and_their_cures_end_them,
    doctor::redis::settings_that_forget_or_evict_are_warnings_and_their_cures_end_them,
    doctor::redis::a_replica_is_an_error_and_the_primary_that_it_names_is_none,
    doctor::redis::each_missing_right_is_named_and_the_rule_that_gives_it_is_enough,
    doctor::redis::entries_of_others_under_the_names_of_locks_are_found_and_deleted_by_the_cure,
    doctor::redis::a_lease_shorter_than_three_round_trips_is_a_warning_and_the_one_that_is_named_is_none,
    doctor::redis::fewer_than_three_sentinels_are_a_warning_and_a_third_one_is_the_cure,
    doctor::redis::a_cluster_that_does_not_serve_all_slots_is_an_error,
    doctor::redlock::what_takes_a_vote_from_a_node_is_found,
    doctor::mysql::settings_that_forget_or_refuse_are_found_and_their_cures_end_them,
    doctor::mysql::each_missing_right_is_named_and_the_grant_that_gives_it_is_enough,
    doctor::mysql::tables_and_rows_that_are_not_as_they_should_be_are_found_and_their_cures_end_them,
    doctor::mysql::a_replica_that_no_lock_waits_for_is_found_and_the_cure_ends_that,
    doctor::mysql::a_node_of_galera_cannot_tell_who_writes_to_the_others,
    doctor::postgres::settings_that_forget_or_refuse_are_found_and_their_cures_end_them,
    doctor::postgres::each_missing_right_is_named_and_the_grant_that_gives_it_is_enough,
    doctor::postgres::a_schema_and_rows_that_are_not_as_they_should_be_are_found_and_their_cures_end_them,
    doctor::postgres::a_standby_is_an_error_and_a_pooler_through_which_no_notification_comes_a_warning,
    errors::a_server_that_is_down_is_named_with_what_to_do,
    errors::a_password_or_a_database_that_redis_refuses_is_named,
    errors::a_password_or_a_database_that_mysql_refuses_is_named,
    errors::a_password_or_a_database_that_postgres_refuses_is_named,
    errors::a_password_that_etcd_refuses_is_named,
    errors::a_host_that_is_not_known_is_named,
    errors::a_port_of_something_else_is_named,
    errors::what_was_meant_by_an_address_is_guessed_without_what_may_be_a_password,
    holding::a_held_key_exits_with_75_or_the_chosen_code,
    holding::a_waiter_gets_the_key_when_the_holder_ends,
    holding::the_next_holder_gets_the_key_at_once_when_the_holder_is_killed_and_its_command_dies_with_it,
    holding::readers_share_and_keep_writers_out,
    holding::min_hold_keeps_the_key_although_the_command_has_ended,
    holding::a_signal_cuts_min_hold_short_and_the_key_is_free,
    json::a_run_prints_its_events_in_order,
    json::a_failure_is_one_event_with_its_exit_code,
    loss::the_command_and_what_it_started_are_terminated,
    loss::a_command_that_ends_well_when_it_is_terminated_is_a_loss_all_the_same,
    loss::a_command_that_ignores_sigterm_is_killed_after_kill_after,
    loss::processes_that_the_command_left_behind_are_killed_after_kill_after_too,
    loss::an_interrupt_ends_the_wait_for_what_the_command_left_behind,
    loss::a_stopped_command_is_terminated_too,
    loss::on_lost_kill_sends_no_sigterm,
    loss::ignore_lets_the_command_finish_and_says_so,
    loss::a_loss_that_comes_to_light_at_the_release_counts,
    loss::max_hold_ends_the_command,
    loss::max_hold_is_announced_to_the_command_in_time_to_end_under_the_lock,
    partition::on_one_redis,
    partition::on_a_majority_of_redis_servers,
    partition::on_mysql,
    partition::on_postgres,
    permits::as_many_commands_run_at_a_time_as_there_are_permits,
    permits::as_many_commands_run_at_a_time_as_there_are_permits_on_redis,
    permits::a_permit_of_a_program_that_was_killed_is_free_again,
    permits::permits_that_cannot_be_are_64,
    postgres::its_tables_are_made_once_and_lose_idle_rows,
    postgres::what_cannot_be_connected_to_has_its_exit_code,
    redis::a_held_key_exits_with_75_and_a_free_one_runs_the_command,
    redis::who_waits_is_counted_and_how_long_it_is_held_is_shown,
    redis::the_next_holder_gets_the_key_within_the_lease_when_the_holder_is_killed,
    redis::a_holder_that_was_stopped_past_its_lease_kills_its_command_when_it_wakes_up,
    redis::a_holder_whose_server_dies_loses_its_lock_on_time,
    redis::a_short_first_lease_out_of_the_store_queue_does_not_end_the_command,
    redis::a_signal_while_it_waits_leaves_nothing_behind,
    redis::a_server_that_starts_within_the_wait_is_waited_for,
    redis::a_server_that_does_not_start_within_the_wait_is_69,
    redis::a_server_that_is_down_exits_with_69_or_the_chosen_code,
    redis::a_wrong_password_is_78_and_the_right_one_is_found_where_it_is_put,
    redis::a_reader_exits_with_78_on_a_store_without_readers,
    restart::one_of_several_hosts_runs_the_command_and_the_next_when_it_is_gone,
    restart::one_of_several_hosts_runs_the_command_on_redis_and_the_next_when_it_is_gone,
    restart::a_command_that_ends_is_started_again_under_a_new_lock,
    restart::a_command_whose_lock_was_taken_away_is_started_again,
    restart::a_command_that_cannot_be_started_is_not_tried_again,
    secrets::a_password_is_in_no_output,
    secrets::a_password_that_redis_takes_is_in_no_output_and_no_command_line,
    secrets::a_password_that_mysql_takes_is_in_no_output_and_no_command_line,
    secrets::a_password_that_postgres_takes_is_in_no_output_and_no_command_line,
    secrets::a_password_that_etcd_takes_is_in_no_output_and_no_command_line,
    servers_with_readers::on_postgres,
    servers_with_readers::on_redis,
    servers_with_readers::on_etcd,
    signals::signals_are_forwarded_to_the_command,
    signals::the_lock_is_held_until_the_command_has_ended,
    signals::a_signal_while_it_waits_ends_it_and_leaves_nothing_behind,
    signals::signals_that_are_ignored_stay_ignored,
    signals::these_tests_pass_although_their_parent_ignores_signals,
    terminal::the_command_can_read_from_the_terminal_and_the_next_one_after_it,
    terminal::an_interrupt_from_the_keyboard_reaches_the_command_before_and_after_it_has_the_terminal,
    terminal::the_line_about_waiting_is_drawn_on_a_terminal_and_taken_off_again,
    terminal::the_keyboard_stops_and_the_shell_continues_program_and_command_before_and_after_it_has_the_terminal,
    tutorial::every_section_with_commands_is_followed,
    tutorial::on_files,
    tutorial::on_redis,
    tutorial::on_three_redis_servers,
    tutorial::on_mysql,
    tutorial::on_postgres,
    tutorial::on_etcd,
    usage::bad_usage_is_64_and_runs_nothing,
    usage::arguments_that_are_not_utf8_are_bad_usage_or_go_to_the_command,
    usage::a_directory_that_cannot_be_used_is_78_and_named,
    usage::a_password_file_that_cannot_be_read_is_78_and_named,
    usage::a_password_file_that_is_a_pipe_or_that_others_could_have_written_is_78,
    usage::help_shows_examples_and_exit_codes_and_succeeds,
    usage::man_pages_and_completions_come_from_the_same_definitions,
    usage::a_package_gets_a_manual_page_for_each_command,
    usage::a_package_has_the_program_its_pages_its_completions_and_the_licences,
    watch::the_table_follows_what_is_held,
    watch::the_table_is_sorted_filtered_and_shows_details,
    watch::a_grant_is_released_by_force_after_a_question_and_not_without,
    watch::another_grant_that_came_after_the_question_keeps_the_key,
    watch::of_several_readers_the_chosen_one_is_released_and_the_others_keep_the_key,
    watch::a_store_that_cannot_release_one_reader_alone_says_so_and_all_keep_the_key,
    watch::it_is_drawn_in_whatever_size_the_terminal_has,
    watch::colours_are_left_out_where_they_are_not_wanted_and_the_words_are_the_same,
    watch::the_terminal_is_as_it_was_after_every_end,
    watch::it_stops_for_the_shell_and_goes_on,
    watch::keys_and_labels_cannot_play_with_the_terminal,
    watch::thousands_of_keys_are_paged_and_only_the_screen_is_drawn,
    watch::without_a_terminal_it_says_what_to_do_instead,
    watch_lines::a_line_is_printed_for_each_change,
    watch_lines::it_ends_quietly_when_nobody_reads_it_although_nothing_changes,
    watch_lines::a_redis_that_goes_away_is_told_and_the_table_goes_on_when_it_is_back,
    watch_lines::a_store_that_cannot_be_reached_at_first_is_69,
    watch_pictures::the_pictures_are_what_the_program_shows,
}
