#![doc = include_str!("../README.md")]

// In reading order: how to connect, the public type,
mod builder;
mod kind;
mod locker;
// the operations of the backend,
mod admin;
mod backend;
// what is special to readers: how they draw epochs together and are admitted, and how a writer becomes one,
mod epochs;
mod readers;
// and what all of these share.
mod claims;
mod row;
mod sql;
mod store;

pub use leasehold_core::*;
pub use leasehold_mysql as mysql;

pub use crate::backend::MysqlRwBackend;
pub use crate::builder::MysqlRwBuilder;
pub use crate::kind::KIND;
pub use crate::locker::MysqlRw;
