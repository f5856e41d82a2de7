//! The tests of this crate that use it from outside.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod dashboards;
mod fenced;
mod observability;
mod own_tests;
mod programs;
mod running;

leasehold_testkit::main!();
