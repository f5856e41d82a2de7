//! The tests of this crate that use it from outside, and the conformance suite.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod address;
mod conformance;
mod contention;
mod driver;
mod faults;
mod pooler;
mod settings;
mod sql;
mod standby;
#[cfg(feature = "tls-rustls")]
mod tls;

leasehold_testkit::main!(conformance::suite().driver(driver::Servers));
