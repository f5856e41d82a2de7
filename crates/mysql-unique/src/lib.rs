#![doc = include_str!("../README.md")]

// In reading order: how to connect, the public type,
mod builder;
mod kind;
mod locker;
// the operations of the backend,
mod admin;
mod backend;
// and what they share.
mod claims;
mod sql;
mod store;

pub use leasehold_core::*;
pub use leasehold_mysql as mysql;

pub use crate::backend::MysqlUniqueBackend;
pub use crate::builder::MysqlUniqueBuilder;
pub use crate::kind::KIND;
pub use crate::locker::MysqlUnique;
