//! The tests of this crate that use it from outside.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod chaos;
mod credentials;
mod ends;
mod exclusion;
mod excuses;
mod gaps;
mod growth;
mod judge;
mod mutations;
mod parts;
mod registers;
mod simulator;
mod story;

leasehold_testkit::main!();
