//! Runs the real program, as people and scripts do.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "all of it is test")]

mod admin;
mod command;
#[cfg(any(feature = "redis", feature = "mysql"))]
mod doctor;
mod holding;
mod json;
mod loss;
#[cfg(any(feature = "redis", feature = "mysql"))]
mod partition;
#[cfg(feature = "redis")]
mod redis;
mod secrets;
mod signals;
mod support;
mod terminal;
mod usage;
