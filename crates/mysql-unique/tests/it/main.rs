//! The tests of this crate that use it from outside, and the conformance suite.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod advisory_queue;
mod conformance;
mod cost;
mod shared;
#[allow(dead_code, reason = "the statements are for the library")]
#[path = "../../src/sql.rs"]
mod sql;

use leasehold_testkit::mysql::Servers;

leasehold_testkit::main!(conformance::suite().driver(Servers::<shared::Unique>::new(leasehold_mysql_unique::KIND)));
