//! `leasehold::fenced` on real resources: a late write is refused, also when many write at the same time.

mod hash;
mod object;
mod row;

use hash::{
    a_hash_never_goes_back_to_a_smaller_token, a_hash_refuses_a_late_write, what_is_no_write_of_a_hash_changes_nothing,
};
use object::{
    a_version_that_is_a_digest_of_the_content_alone_lets_a_late_write_through,
    an_object_never_goes_back_to_a_smaller_token, an_object_refuses_a_late_write,
};
use row::{
    a_row_never_goes_back_to_a_smaller_token, a_row_refuses_a_late_write, an_old_snapshot_does_not_hide_a_larger_token,
};

/// A number from 1 to `tokens` for each of eight writers in turn, in an order in which many are late.
fn tokens_of(writer: u64, tokens: u64) -> impl Iterator<Item = u64> {
    (0..tokens / 8).map(move |turn| turn * 8 + (writer * 5 + turn * 3) % 8 + 1)
}

leasehold_testkit::main! {
    @multi_thread a_row_refuses_a_late_write,
    @multi_thread an_old_snapshot_does_not_hide_a_larger_token,
    @multi_thread a_row_never_goes_back_to_a_smaller_token,
    @multi_thread a_hash_refuses_a_late_write,
    @multi_thread what_is_no_write_of_a_hash_changes_nothing,
    @multi_thread a_hash_never_goes_back_to_a_smaller_token,
    an_object_refuses_a_late_write,
    @multi_thread an_object_never_goes_back_to_a_smaller_token,
    a_version_that_is_a_digest_of_the_content_alone_lets_a_late_write_through,
}
