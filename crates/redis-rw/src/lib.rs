#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]

// In reading order: how to connect, the public type,
mod builder;
mod kind;
mod locker;
// the operations of the backend,
mod backend;
// each of them with its scripts,
mod acquire;
mod admin;
mod release;
// and what they share.
mod store;

pub use leasehold_core::*;
/// The driver's client, for [`RedisRw::from_client`].
pub use leasehold_redis::fred::clients::Client;

pub use crate::backend::RedisRwBackend;
pub use crate::builder::RedisRwBuilder;
pub use crate::kind::KIND;
pub use crate::locker::RedisRw;
