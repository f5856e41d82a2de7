//! The tests of this crate that use it from outside.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod batches;
mod connection;
mod nodes;
mod redirections;
mod sentinels;
mod signals;
mod store;
mod stores;
#[cfg(feature = "tls-rustls")]
mod tls;

leasehold_testkit::main!();
