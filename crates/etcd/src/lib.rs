#![doc = include_str!("../README.md")]

// In reading order: how to connect, the public type,
mod builder;
mod kind;
mod locker;
// the operations of the backend,
mod backend;
// each of them with its transactions,
mod acquire;
mod admin;
mod release;
mod renew;
// how waiters hear of releases,
mod notifications;
// what makes a cluster unsafe,
mod examination;
// what the store has of a key,
mod line;
mod names;
// and how it is asked.
mod address;
mod commits;
mod failure;
mod leases;
mod nodes;
mod proto;
mod store;
mod unanswered;

pub use leasehold_core::*;

pub use crate::backend::EtcdBackend;
pub use crate::builder::EtcdBuilder;
pub use crate::kind::KIND;
pub use crate::locker::Etcd;
