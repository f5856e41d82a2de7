//! The tests of this crate that use it from outside, and the conformance suite.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod admin;
mod cluster;
mod conformance;
mod driver;
mod epochs;
mod forgery;
mod garbage;
mod group_commit;
mod least_user;
mod line;
mod passwords;
mod queue;
mod refusals;
mod topologies;
mod waiters;

leasehold_testkit::main!(conformance::suite().driver(driver::servers()));
