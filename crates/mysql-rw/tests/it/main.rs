//! The tests of this crate that use it from outside, and the conformance suite.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod admission;
mod closing;
mod conformance;
mod cost;
mod readers;
mod shared;
#[allow(dead_code, reason = "the statements are for the library")]
#[path = "../../src/sql.rs"]
mod sql;
mod turns;

leasehold_testkit::main!(conformance::suite());
