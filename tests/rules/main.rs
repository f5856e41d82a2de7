//! Rules of the repository, as tests that fail.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod bench_checker;
mod circles;
mod documents;
mod events;
mod harness;
mod readmes;
mod release;
mod repository;
mod texts;
mod words;
