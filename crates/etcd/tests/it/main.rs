//! The tests of this crate that use it from outside, and the conformance suite.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod clients;
mod conformance;
mod cost;
mod driver;
mod late;
mod members;
mod settings;
#[cfg(feature = "tls-rustls")]
mod tls;
mod waiters;

leasehold_testkit::main!(conformance::suite().driver(driver::Servers));
