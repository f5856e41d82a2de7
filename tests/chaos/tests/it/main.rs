//! The tests of this crate that use it from outside.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod chaos;
mod credentials;
mod judge;
mod story;

leasehold_testkit::main!();
