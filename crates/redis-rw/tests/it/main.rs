//! The tests of this crate that use it from outside, and the conformance suite.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod conformance;
mod least_user;
mod readers;
mod topologies;

use leasehold_testkit::redis::Servers;

leasehold_testkit::main!(
    conformance::suite().driver(Servers::new(leasehold_redis_rw::KIND, include_str!("../../README.md")))
);
