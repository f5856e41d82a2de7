#![doc = include_str!("../README.md")]

// In reading order: how to connect, the public type,
mod builder;
mod kind;
mod locker;
// the operations of the backend,
mod backend;
// each of them with its requests,
mod acquire;
mod admin;
mod release;
mod renew;
// and what they share.
mod store;

pub use leasehold_core::*;

pub use crate::backend::NewStoreBackend;
pub use crate::builder::NewStoreBuilder;
pub use crate::kind::KIND;
pub use crate::locker::NewStore;
