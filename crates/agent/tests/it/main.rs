//! The tests of the backend `agent:` from outside, and the conformance suite.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod agents;
mod conformance;
mod unread;

leasehold_testkit::main!(conformance::suite());
