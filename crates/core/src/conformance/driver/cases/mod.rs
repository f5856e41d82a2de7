//! The cases, in files by what they are about, each named after what a user can rely on.

mod answers;
mod closing;
mod connecting;
mod growth;
mod links;
mod refusals;
mod servers;

use futures::future::LocalBoxFuture;

use crate::conformance::driver::rig::Room;
use crate::conformance::driver::stage::{Stage, Verdict};

/// One case: its name, the server that it needs, and its function.
pub(super) struct Case {
    pub(super) name: &'static str,
    pub(super) room: Room,
    pub(super) run: Check,
}

type Check = fn(Stage) -> LocalBoxFuture<'static, Verdict>;

macro_rules! cases {
    ($($module:ident :: $name:ident $(@ $room:ident)?)*) => {
        &[$(Case { name: stringify!($name), room: cases!(@room $($room)?), run: |stage| Box::pin($module::$name(stage)) }),*]
    };
    (@room) => { Room::Ample };
    (@room $room:ident) => { Room::$room };
}

// Those that take longest come first: begun last, they would be waited for alone.
pub(super) static CASES: &[Case] = cases! {
    growth::a_key_costs_no_more_after_thousands_of_cycles
    growth::a_thousand_hand_offs_leave_no_more_on_the_server_than_ten
    growth::the_keys_of_others_slow_nobody_down
    closing::closing_ends_while_the_server_is_silent
    closing::closing_under_load_frees_all_keys_and_connections
    closing::a_locker_that_is_dropped_lets_go_of_keys_and_connections
    closing::a_runtime_that_rests_stalls_nobody
    closing::the_clients_own_pool_is_left_as_it_was

    connecting::a_server_that_is_not_there_is_told_by_its_address
    connecting::a_connection_that_is_closed_at_once_is_told
    connecting::connecting_to_a_silent_server_ends
    connecting::connecting_that_is_given_up_leaves_nothing
    connecting::a_wrong_password_is_told_and_not_shown

    links::connections_that_break_cost_no_lock
    links::a_connection_that_died_unnoticed_is_replaced
    links::a_waiter_behind_a_connection_that_died_gets_its_turn
    links::a_slow_connection_is_waited_for
    links::acquisitions_that_are_cancelled_at_any_moment_leave_nothing

    answers::a_claim_whose_answer_is_lost_is_given_back
    answers::a_claim_whose_answer_is_cut_in_the_middle_is_given_back
    answers::a_release_whose_answer_is_lost_spares_the_next_holder
    answers::a_claim_that_is_carried_out_too_late_keeps_the_key_from_nobody
    answers::a_claim_that_comes_too_late_does_not_disturb_the_next_holder

    servers::a_silence_that_is_shorter_than_the_lease_costs_no_lock
    servers::a_silence_that_is_longer_than_the_lease_is_told_to_the_holder
    servers::a_server_that_restarts_keeps_locks_and_waiters
    servers::a_server_that_forgets_tells_the_holder_and_gives_larger_tokens
    servers::sessions_that_the_operator_ends_cost_a_reconnection

    refusals::without_a_connection_left_the_error_says_so @FewConnections
    refusals::a_read_only_server_is_waited_for
    refusals::a_full_server_is_waited_for
    refusals::a_missing_right_is_told_and_not_waited_for
};
