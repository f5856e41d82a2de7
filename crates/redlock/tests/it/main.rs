//! The tests of this crate that use it from outside, and the conformance suite.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test fails by panicking, and tells its figures")]

mod attach;
mod auto_repair;
mod batches;
mod bench;
mod closing;
mod conformance;
mod contenders;
mod forgotten;
mod garbage;
mod healing;
mod late;
mod least_user;
mod listing;
mod nodes;
mod shut_out;
mod silence;
mod tokens;

leasehold_testkit::main!(conformance::suite());
