//! A private `MariaDB` for tests, and the tests that are the same for every backend on it.
#![allow(clippy::unwrap_used, clippy::print_stderr, missing_docs, reason = "tests, whose names say what they show")]

pub mod bad_input;
pub mod cost;
pub mod group_commit;
pub mod leases;
pub mod privileges;
mod rig;
pub mod routing;
mod server;
pub mod steps;
mod subject;
pub mod tokens;

pub use self::rig::Servers;
pub use self::server::Server;
pub use self::subject::Subject;

/// The tests that are the same for every backend, on this [`Subject`].
#[macro_export]
macro_rules! shared_tests {
    ($subject:ty) => {
        $crate::shared_tests! { $subject,
            bad_input:
                what_is_missing_is_said_and_what_to_do,
                a_newer_table_is_used_if_it_says_so_and_refused_by_name_if_not,
                settings_are_checked_before_anything_is_sent,
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
                a_pool_of_the_callers_is_given_back_as_it_was,
                a_server_far_away_can_be_connected_to;
            privileges:
                the_rights_that_the_readme_names_suffice;
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
