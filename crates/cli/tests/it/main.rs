//! The tests of this crate that use it from outside.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test fails by panicking, and tells what it leaves out")]

mod admin;
#[cfg(target_os = "linux")]
mod agent;
mod bench;
#[cfg(target_os = "linux")]
mod clients;
mod doctor;
mod errors;
mod hold;
mod holding;
mod loss;
mod pages;
mod partition;
mod redis;
mod restart;
mod secrets;
mod signals;
mod stores;
mod support;
#[cfg(target_os = "linux")]
mod terminal;
mod usage;
#[cfg(target_os = "linux")]
mod watch;

leasehold_testkit::main!();
