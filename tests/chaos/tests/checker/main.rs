//! The checker of histories finds what is wrong with them, each by the rule meant, and nothing in good ones.

#![allow(clippy::unwrap_used, reason = "tests")]

mod ends;
mod exclusion;
mod excuses;
mod gaps;
mod growth;
mod judge;
mod mutations;
mod parts;
mod registers;
mod simulator;
mod story;
