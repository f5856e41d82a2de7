//! The tests of this crate that use it from outside.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod address;
mod fenced;
mod kinds;
mod registered;

leasehold_testkit::main!();
