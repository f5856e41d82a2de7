//! What goes wrong with quorums of Redis servers, on real ones. Each test starts servers of its own; where
//! `redis-server` is not installed, it says so and passes.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a test fails by panicking, and tells its figures and why it does not run"
)]

mod bench;
mod clocks;
mod contenders;
mod nodes;
mod silence;
mod tokens;
