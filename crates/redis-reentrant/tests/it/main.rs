//! The tests of this crate that use it from outside, and the conformance suite.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod closing;
mod conformance;
mod garbage;
mod least_user;
mod refusals;
mod sessions;
mod topologies;
mod waiters;

use leasehold_testkit::redis::Servers;

leasehold_testkit::main!(
    conformance::suite().driver(Servers::new(leasehold_redis_reentrant::KIND, include_str!("../../README.md")))
);
