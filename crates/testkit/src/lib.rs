#![doc = include_str!("../README.md")]
#![allow(clippy::missing_panics_doc, reason = "a test fails by panicking")]

// How tests are run,
#[cfg(feature = "harness")]
mod harness;
mod waiting;
// what they run on,
mod child;
mod corpus;
#[cfg(feature = "etcd")]
pub mod etcd;
pub mod launch;
#[cfg(feature = "mysql")]
pub mod mysql;
#[cfg(feature = "postgres")]
pub mod postgres;
#[cfg(feature = "harness")]
#[allow(dead_code, reason = "each kind of server needs a part of it")]
mod private;
#[cfg(feature = "redis")]
pub mod redis;
#[cfg(all(feature = "terminal", target_os = "linux"))]
pub mod terminal;
// and what they need beside servers.
#[cfg(feature = "harness")]
mod authority;
#[cfg(feature = "harness")]
mod faulty;
#[cfg(feature = "harness")]
mod store;
#[cfg(feature = "harness")]
mod together;

#[cfg(feature = "harness")]
pub use leasehold_core::conformance::driver::{Effects, Proxy, Silenced, a_runtime_that_rests_stalls_nobody};
#[cfg(feature = "harness")]
pub use leasehold_core::conformance::{
    Fault, Faults, Faulty, Op, error_text as shown, needs, needs_or_why, shows_nothing,
    tokens_grow_although_all_is_forgotten,
};

#[cfg(feature = "harness")]
pub use crate::authority::{Authority, Issued};
pub use crate::child::KilledOnDrop;
pub use crate::corpus::{corpus, corpus_line, corpus_of_text, corpus_of_urls};
#[cfg(feature = "harness")]
pub use crate::faulty::{FaultyMemory, faulty_memory};
#[cfg(feature = "harness")]
#[doc(hidden)]
pub use crate::harness::{Async, Body, Outcome, Sync, Test, Way, completion, run};
#[cfg(feature = "harness")]
pub use crate::harness::{if_deep, this_program};
#[cfg(feature = "harness")]
pub use crate::store::Store;
#[cfg(feature = "harness")]
pub use crate::together::{claim_each_for_two, crowd, crowd_of_both, readers_life, whole_life};
#[cfg(feature = "harness")]
pub use crate::waiting::eventually;
pub use crate::waiting::{Deadline, PATIENCE, eventually_some, within};
#[cfg(feature = "harness")]
#[doc(hidden)]
pub use inventory;
#[cfg(feature = "harness")]
pub use leasehold_testkit_macros::test;
