//! A private `MariaDB` for tests, and the tests that are the same for every backend on it.
#![allow(clippy::unwrap_used, clippy::print_stderr, missing_docs, reason = "tests, whose names say what they show")]

pub mod bad_input;
pub mod clocks;
pub mod cost;
mod grant_log;
pub mod group_commit;
pub mod leases;
pub mod privileges;
pub mod processes;
mod rig;
pub mod routing;
pub mod scale;
mod server;
pub mod steps;
mod subject;
pub mod tokens;

pub use self::grant_log::GrantLog;
pub use self::rig::Servers;
pub use self::server::Server;
pub use self::subject::Subject;

/// The tests that are the same for every backend, on this [`Subject`].
#[macro_export]
macro_rules! shared_tests {
    ($subject:ty) => {
        #[$crate::test(multi_thread, server, deep)]
        async fn no_statement_reads_far_in_a_table_of_a_million_rows() {
            $crate::mysql::scale::no_statement_reads_far_in_a_table_of_a_million_rows::<$subject>().await;
        }

        $crate::shared_tests! { $subject,
            bad_input:
                what_is_missing_is_said_and_what_to_do,
                a_newer_table_is_used_if_it_says_so_and_refused_by_name_if_not,
                addresses_are_checked_before_anything_is_sent,
                a_pool_of_the_callers_does_not_show_its_password_either;
            leases:
                every_default_of_the_server_is_right,
                statement_logging_at_read_committed_is_refused_with_advice,
                the_steps_of_daylight_saving_move_no_lease,
                names_that_text_collations_merge_are_different_locks,
                a_renewal_that_races_an_eviction_leaves_one_holder,
                a_renewal_is_waited_for_no_longer_than_it_is_of_use,
                a_cycle_takes_few_statements_and_is_never_a_deadlock,
                collected_rows_do_not_take_tokens_back;
            routing:
                the_lock_is_on_the_server_of_the_address,
                a_switchover_under_waiters_and_a_held_lock_is_noticed_at_once,
                a_pool_of_the_callers_is_given_back_as_it_was,
                a_claim_that_broke_is_not_taken_for_refused,
                a_server_far_away_can_be_connected_to;
            clocks:
                a_client_whose_clock_is_an_hour_off_is_like_any_other,
                a_child_lives_by_another_clock;
            privileges:
                the_rights_that_the_readme_names_suffice;
            processes:
                no_token_repeats_or_goes_back,
                a_child_takes_locks_until_it_is_killed;
            group_commit:
                what_comes_in_meanwhile_is_committed_together,
                each_claim_of_a_batch_is_answered_for_itself,
                a_row_that_somebody_locks_fails_nobody_else_of_its_batch,
                batches_over_the_same_keys_are_never_a_deadlock;
            tokens:
                an_epoch_that_is_ahead_of_the_clock_waits_for_it_unless_the_clock_was_set_back;
        }
    };
    ($subject:ty, $($module:ident: $($case:ident),+;)+) => {
        $($(
            #[$crate::test(multi_thread, server)]
            async fn $case() {
                $crate::mysql::$module::$case::<$subject>().await;
            }
        )+)+
    };
}
