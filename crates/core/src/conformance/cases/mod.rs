//! The cases, in files by what they are about, each named after the clause of the contract that it checks.

mod admin;
mod attach;
mod context;
mod downgrade;
mod election;
mod ends;
mod errors;
mod exclusion;
mod keys;
mod lease;
mod lease_end;
mod loss;
mod observe;
mod order;
mod owner;
mod readers;
mod reentrant;
mod release;
mod renewal;
mod runtimes;
mod semaphore;
mod token;
mod waiting;

use futures::future::BoxFuture;

pub(super) use self::context::TestContext;

use crate::Capability;
use crate::conformance::model;
use crate::conformance::verdict::Failure;

/// One case: its name, the capabilities without which it is ignored, those with which it is ignored, and its function.
#[derive(Debug)]
pub(super) struct Case {
    pub(super) name: &'static str,
    pub(super) needs: &'static [Capability],
    pub(super) unless: &'static [Capability],
    pub(super) run: ClauseCheck,
}

pub(super) type ClauseCheck = fn(TestContext) -> BoxFuture<'static, Result<(), Failure>>;

pub(super) fn all() -> &'static [Case] {
    CASES
}

macro_rules! cases {
    ($($module:ident :: $name:ident $([$($need:ident),+])? $(![$($spoiler:ident),+])?)*) => {
        &[$(Case {
            name: stringify!($name),
            needs: &[$($(Capability::$need),+)?],
            unless: &[$($(Capability::$spoiler),+)?],
            run: |context| Box::pin($module::$name(context)),
        }),*]
    };
}

const CASES: &[Case] = cases! {
    model::c01_any_script_of_steps_is_answered_as_the_contract_says
    exclusion::c01_a_second_holder_is_excluded
    exclusion::c01_sixteen_contenders_never_overlap
    exclusion::c01_of_claims_at_one_moment_one_is_granted
    token::c01_a_queue_position_names_the_epoch_of_the_holder [Queue, Fencing]
    readers::c01_readers_share [Shared]
    readers::c01_writers_and_readers_exclude_each_other [Shared]
    readers::c01_each_of_many_readers_excludes_writers [Shared]
    readers::c01_a_writer_waits_for_the_reader_that_stays_longest [Shared, Lease]

    owner::c02_a_stranger_can_neither_renew_nor_release
    owner::c02_every_epoch_has_an_owner_of_its_own
    owner::c02_a_claim_is_idempotent_for_its_owner

    exclusion::c03_an_unrenewed_holder_frees_the_key [Lease]
    exclusion::c03_a_killed_holder_frees_the_key [CrossProcess]

    token::c04_tokens_grow_across_release [Fencing]
    token::c04_tokens_grow_across_expiry [Fencing, Lease]
    token::c04_tokens_grow_also_within_one_moment_of_the_clock [Fencing]
    token::c04_an_empty_store_begins_at_its_clock [Fencing]
    token::c04_epochs_grow_no_faster_than_the_clock [Fencing]

    loss::c05_the_deadline_runs_from_before_the_request [Lease]
    lease_end::c05_nobody_is_granted_before_the_guard_gives_up [Lease]
    loss::c05_a_grant_that_comes_too_late_is_refused [Lease]
    loss::c05_loss_is_told_while_a_renewal_hangs [Lease]
    loss::c05_is_held_compares_clocks_at_the_point_of_use [Lease]
    loss::c05_a_stopped_holder_learns_of_its_loss_first [Lease, CrossProcess]

    loss::c06_a_lease_that_ran_out_is_expired [Lease]
    loss::c06_a_grant_that_vanished_is_stolen
    loss::c06_closing_is_shutdown
    ends::c06_after_closing_no_guard_is_created
    ends::c06_closing_ends_while_the_store_is_silent
    ends::c06_closing_waits_for_a_release_under_way
    ends::c06_after_closing_no_step_is_carried_out ![Reentrancy]

    waiting::c07_a_cancelled_attempt_gives_back_what_it_wins
    waiting::c07_a_request_that_is_given_up_leaves_nothing
    waiting::c07_a_cancelled_wait_leaves_no_trace
    waiting::c07_a_lost_reply_leaves_nothing
    waiting::c07_the_wait_limit_leaves_nothing

    lease_end::c08_a_client_an_hour_off_behaves_like_any_other

    renewal::c09_renewal_of_an_expired_grant_creates_nothing [Lease]
    renewal::c09_the_largest_batch_renews_every_one [Lease]
    renewal::c09_a_grant_is_renewed_as_often_as_is_asked [Lease]

    waiting::c10_try_answers_none_while_held
    waiting::c10_try_does_not_take_an_own_release_for_another_holder
    waiting::c10_try_answers_while_others_wait
    waiting::c10_a_failing_store_is_an_error
    waiting::c10_busy_tells_what_is_left_of_the_lease [Lease]

    waiting::c11_the_wait_limit_is_kept
    waiting::c11_the_limit_is_kept_while_the_store_is_silent

    waiting::c12_transient_faults_are_ridden_out
    waiting::c12_a_permanent_fault_ends_the_wait_at_once
    waiting::c12_attempts_back_off_during_an_outage
    runtimes::c12_a_caller_that_is_not_polled_stalls_nobody
    runtimes::c12_a_locker_whose_runtime_ended_serves_or_says_that_it_cannot

    waiting::c13_lost_signals_do_not_cost_liveness
    waiting::c13_each_of_many_subscriptions_is_told [Wakeup] ![Reentrancy]
    waiting::c13_a_waiter_gets_the_key_after_its_release
    waiting::c13_only_the_head_talks_to_the_store
    ends::c13_however_a_lock_ends_who_waits_here_goes_on ![Reentrancy]

    order::c14_waiters_are_served_in_order ![Reentrancy]
    order::c14_a_cancelled_waiter_is_skipped ![Reentrancy]
    order::c14_the_store_serves_lockers_in_order [Queue]
    order::c14_a_queue_position_that_is_given_up_is_skipped [Queue]
    order::c14_a_waiter_that_died_does_not_keep_the_others [Queue, Lease]

    readers::c15_a_waiting_writer_holds_back_later_readers [Shared]
    readers::c15_a_waiting_writer_holds_back_readers_elsewhere [Shared, WriterIntent]
    readers::c15_the_mark_of_a_cancelled_writer_goes_away [Shared, WriterIntent]
    readers::c15_writers_do_not_starve_a_waiting_reader [Shared, WriterIntent]

    lease::c16_renewal_outlives_the_lease [Lease]
    lease::c16_a_failed_renewal_is_not_a_loss [Lease]
    runtimes::c16_renewal_goes_on_while_another_runtime_rests [Lease]

    lease::c17_no_renewal_after_release_drop_or_loss

    lease::c18_max_hold_ends_renewal_and_frees_the_key

    lease::c19_bad_leases_are_refused_before_anything_is_sent

    release::c20_release_says_that_it_released
    release::c20_a_lost_reply_is_settled_in_the_background

    release::c21_drop_releases
    release::c21_work_under_a_lock_has_released_it_when_it_returns
    release::c21_drop_does_not_wait_for_a_silent_store
    release::c21_drop_after_the_runtime_ended_is_harmless
    runtimes::c21_a_guard_of_a_runtime_that_ended_is_released

    keys::c22_keys_that_look_alike_are_distinct
    keys::c22_awkward_keys_are_ordinary
    keys::c22_bad_keys_are_refused
    keys::c22_namespaces_do_not_see_each_other
    keys::c22_namespaces_that_begin_alike_do_not_meet

    errors::c23_errors_name_key_operation_and_backend
    errors::c23_owner_ids_are_not_shown
    errors::c24_odd_listings_do_not_panic

    admin::c25_inspect_shows_the_holder
    admin::c25_list_pages_through_held_keys
    admin::c25_list_goes_on_behind_what_has_ended [Lease]
    admin::c25_list_takes_the_prefix_literally
    admin::c25_who_waits_in_the_store_is_counted [Queue]
    admin::c25_force_release_frees_the_key_and_tells_the_holder
    admin::c25_a_grant_that_is_over_is_not_released_by_its_token [Fencing]
    ends::c25_force_release_spares_a_later_grant

    observe::c26_a_long_wait_names_the_holder
    observe::c26_metrics_and_spans_have_the_same_names_everywhere

    reentrant::c27_a_session_reenters_at_once_and_counts [Reentrancy]
    reentrant::c27_the_inner_guard_may_outlive_the_outer [Reentrancy]
    reentrant::c27_the_last_level_frees_the_key [Reentrancy]
    reentrant::c27_other_sessions_are_excluded_throughout [Reentrancy]
    reentrant::c27_a_reentry_does_not_wait_behind_others [Reentrancy]
    reentrant::c27_a_loss_reaches_every_level [Reentrancy]
    reentrant::c27_no_fresh_lease_begins_under_a_lost_guard [Reentrancy]
    reentrant::c27_a_reentry_that_finds_the_lease_gone_is_a_loss [Reentrancy, Fencing]
    reentrant::c27_a_level_whose_reply_was_lost_counts_once [Reentrancy]
    reentrant::c27_a_session_does_not_join_a_lease_that_it_lost [Reentrancy, Fencing]
    reentrant::c27_a_level_is_claimed_and_released_once_in_the_store [Reentrancy]
    reentrant::c27_an_earlier_epoch_of_the_same_session_is_over [Reentrancy, Fencing]
    reentrant::c27_the_lease_is_renewed_once_for_all_levels [Reentrancy, Lease]
    reentrant::c27_a_short_level_does_not_shorten_the_lease [Reentrancy, Lease]
    reentrant::c27_the_shortest_max_hold_applies_to_all_levels [Reentrancy]
    reentrant::c27_a_level_without_renewal_is_not_renewed_on_after_another_had_it [Reentrancy, Lease]
    reentrant::c27_closing_gives_back_every_level [Reentrancy]

    attach::c28_a_detached_lock_is_attached_once [Detach]
    attach::c28_what_nobody_could_attach_is_released ![Detach]
    attach::c28_of_two_who_attach_at_once_one_has_the_lock [Detach]
    attach::c28_of_two_processes_that_attach_at_once_one_has_the_lock [Detach, CrossProcess]
    attach::c28_the_next_holder_after_an_attached_lock_has_its_own_texts [Detach]
    attach::c28_the_previous_owner_can_neither_renew_nor_release [Detach]
    attach::c28_an_attach_that_fails_or_is_cancelled_leaves_nothing [Detach]
    attach::c28_an_attached_lock_is_renewed_and_learns_of_its_loss [Detach]

    downgrade::c29_who_reads_beside_a_writer_that_became_a_reader_has_a_larger_number [Fencing, Shared]
    downgrade::c29_the_reader_has_texts_of_its_own [Shared]
    downgrade::c29_a_writer_that_was_taken_away_becomes_no_reader [Shared]
    downgrade::c29_a_downgrade_that_fails_or_is_cancelled_leaves_nothing [Shared]
    downgrade::c29_the_reader_is_one_like_any_other [Shared]

    semaphore::c30_there_are_as_many_permits_as_were_asked_for_and_no_more
    semaphore::c30_of_many_contenders_never_more_than_the_permits_are_inside
    semaphore::c30_a_waiter_is_granted_whichever_permit_is_released
    semaphore::c30_the_permit_of_a_holder_that_died_is_granted_after_its_lease [Lease]
    semaphore::c30_a_wait_that_ends_without_a_permit_leaves_nothing
    semaphore::c30_of_permits_released_at_once_a_waiter_keeps_one
    semaphore::c30_who_want_several_permits_do_not_block_each_other
    semaphore::c30_several_permits_are_granted_all_or_none
    semaphore::c30_waiters_of_several_lockers_are_served_in_order [Queue]
    semaphore::c30_a_semaphore_that_cannot_be_is_refused_before_anything_is_sent
    semaphore::c30_a_failing_store_is_an_error_and_not_a_semaphore_without_permits
    semaphore::c30_of_several_permits_none_was_lost_while_waiting_for_the_others [Lease]

    election::c31_one_candidate_leads_at_a_time_and_terms_grow
    election::c31_who_resigns_is_followed_by_a_candidate_that_waits
    election::c31_a_campaign_that_is_cancelled_leaves_nothing
    election::c31_an_observer_sees_each_leader_and_that_nobody_leads
    election::c31_work_stops_before_the_next_leader_works [Lease]
    election::c31_a_leader_that_was_lost_leads_again_in_a_greater_term
    election::c31_at_a_shutdown_the_work_stops_and_the_next_candidate_leads
    election::c31_work_that_ends_is_returned_and_its_candidate_resigns
    election::c31_a_failing_store_is_not_an_election_without_a_leader
    election::c31_an_observer_is_told_of_a_failing_store_and_not_that_nobody_leads
};
