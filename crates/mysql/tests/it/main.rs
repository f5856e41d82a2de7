//! The tests of this crate that use it from outside.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod leases;
mod queue;
mod recovery;
mod rogue;
mod schema;
mod sessions;
#[cfg(feature = "tls-rustls")]
mod tls;

leasehold_testkit::main!();
