//! The tests of this crate that use it from outside, and the conformance suite.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod conformance;
mod damage;
mod directories;
mod inspection;
mod processes;
mod strangers;
mod support;
mod tokens;

leasehold_testkit::main!(conformance::suite());
