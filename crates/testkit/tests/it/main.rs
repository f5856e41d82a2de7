//! The tests of this crate that use it from outside.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod corpus;
mod harness;

leasehold_testkit::main!();
