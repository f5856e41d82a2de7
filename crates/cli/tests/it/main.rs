//! The tests of this crate that use it from outside.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test fails by panicking, and tells what it leaves out")]

mod admin;
#[cfg(target_os = "linux")]
mod agent;
mod bench;
#[cfg(all(feature = "redis", target_os = "linux"))]
mod clients;
mod command;
mod detached;
mod doctor;
mod errors;
mod hold;
mod holding;
mod json;
mod loss;
#[cfg(any(feature = "redis", feature = "mysql"))]
mod partition;
mod permits;
#[cfg(all(feature = "watch", feature = "redis", target_os = "linux"))]
mod picture;
#[cfg(feature = "postgres")]
mod postgres;
#[cfg(feature = "redis")]
mod redis;
mod restart;
mod secrets;
#[cfg(any(feature = "postgres", feature = "redis", feature = "etcd"))]
mod servers_with_readers;
mod signals;
mod support;
mod terminal;
mod tutorial;
mod usage;
#[cfg(all(feature = "watch", target_os = "linux"))]
mod watch;
#[cfg(all(feature = "watch", feature = "redis", target_os = "linux"))]
mod watch_lines;
#[cfg(all(feature = "watch", feature = "redis", target_os = "linux"))]
mod watch_pictures;

leasehold_testkit::main!();
