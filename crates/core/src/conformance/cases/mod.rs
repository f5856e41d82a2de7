//! The cases, in files by what they are about, each named after the clause of the contract that it checks.

mod admin;
mod attach;
mod context;
mod ends;
mod errors;
mod exclusion;
mod keys;
mod lease;
mod lease_end;
mod order;
mod owner;
mod readers;
mod reentrant;
mod release;
mod renewal;
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

pub(super) static CASES: &[Case] = cases! {
    model::c01_any_script_of_steps_is_answered_as_the_contract_says
    exclusion::c01_a_second_holder_is_excluded
    exclusion::c01_sixteen_contenders_never_overlap
    exclusion::c01_of_claims_at_one_moment_one_is_granted
    readers::c01_each_of_many_readers_excludes_writers [Shared]
    owner::c02_a_stranger_can_neither_renew_nor_release
    owner::c02_a_claim_is_idempotent_for_its_owner
    exclusion::c03_a_killed_holder_frees_the_key [CrossProcess]
    token::c04_tokens_grow_across_release [Fencing]
    token::c04_tokens_grow_across_expiry [Fencing, Lease]
    token::c04_an_empty_store_begins_at_its_clock [Fencing]
    token::c04_epochs_grow_no_faster_than_the_clock [Fencing]
    lease_end::c05_nobody_is_granted_before_the_guard_gives_up [Lease]
    lease_end::c05_a_stopped_holder_learns_of_its_loss_first [Lease, CrossProcess]
    ends::c06_after_closing_no_step_is_carried_out ![Reentrancy]
    waiting::c07_a_request_that_is_given_up_leaves_nothing
    waiting::c07_a_cancelled_wait_leaves_no_trace
    lease_end::c08_a_client_an_hour_off_behaves_like_any_other
    renewal::c09_the_largest_batch_renews_every_one [Lease]
    renewal::c09_a_grant_is_renewed_as_often_as_is_asked [Lease]
    waiting::c10_try_answers_none_while_held
    waiting::c10_busy_tells_what_is_left_of_the_lease [Lease]
    ends::c12_a_locker_whose_runtime_ended_serves_or_says_that_it_cannot
    waiting::c13_each_of_many_subscriptions_is_told [Wakeup] ![Reentrancy]
    waiting::c13_a_waiter_gets_the_key_after_its_release
    order::c14_the_store_serves_lockers_in_order [Queue]
    order::c14_a_waiter_that_died_does_not_keep_the_others [Queue, Lease]
    readers::c15_a_waiting_writer_holds_back_readers_elsewhere [Shared, WriterIntent]
    readers::c15_the_mark_of_a_cancelled_writer_goes_away [Shared, WriterIntent]
    readers::c15_writers_do_not_starve_a_waiting_reader [Shared, WriterIntent]
    lease::c16_renewal_outlives_the_lease [Lease]
    lease::c19_bad_leases_are_refused_before_anything_is_sent
    release::c20_release_says_that_it_released
    release::c21_drop_releases
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
    reentrant::c27_a_session_reenters_at_once_and_counts [Reentrancy]
    reentrant::c27_a_session_does_not_join_a_lease_that_it_lost [Reentrancy, Fencing]
    reentrant::c27_a_level_is_claimed_and_released_once_in_the_store [Reentrancy]
    reentrant::c27_a_short_level_does_not_shorten_the_lease [Reentrancy, Lease]
    reentrant::c27_a_level_without_renewal_is_not_renewed_on_after_another_had_it [Reentrancy, Lease]
    attach::c28_a_detached_lock_is_attached_once [Detach]
    attach::c28_what_nobody_could_attach_is_released ![Detach]
    attach::c28_of_two_who_attach_at_once_one_has_the_lock [Detach]
    readers::c29_the_reader_is_one_like_any_other [Shared]
    exclusion::c30_of_many_contenders_never_more_than_the_permits_are_inside
};
