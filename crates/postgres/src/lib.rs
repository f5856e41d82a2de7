#![doc = include_str!("../README.md")]

// In reading order: how to connect, the public type,
mod builder;
mod kind;
mod locker;
// the operations of the backend,
mod admin;
mod backend;
mod renew;
// how waiters hear of releases,
mod notifications;
// and what all of these share: the connections, and the schema that they expect.
mod address;
mod claims;
mod examination;
mod failure;
mod releases;
mod reply;
mod schema;
mod sessions;
mod store;
mod tls;

pub use leasehold_core::*;
pub use tokio_postgres;

pub use crate::backend::PostgresBackend;
pub use crate::builder::PostgresBuilder;
pub use crate::kind::KIND;
pub use crate::locker::Postgres;
