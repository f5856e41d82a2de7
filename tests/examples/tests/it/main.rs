//! The tests of this crate that use it from outside.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod document;
mod emitted;
mod everywhere;
mod fenced;
mod fences;
mod jobs;
mod listing;
mod own_tests;
mod prometheus;
mod promql;
mod recorder;
mod running;
mod source;
mod stores;
mod web;

leasehold_testkit::main!();
