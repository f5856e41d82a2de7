//! The tests of this crate that use it from outside, and the conformance suite.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod closing;
mod conformance;
mod epochs;
mod garbage;
mod least_user;
mod refusals;
mod sessions;
mod topologies;
mod waiters;

leasehold_testkit::main!(conformance::suite());
