#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]

// In reading order: the public types and how to connect,
mod builder;
mod locker;
mod session;
// what is done in Redis, each step one script,
mod backend;
mod store;

pub use leasehold_core::{
    self as core, Admin, Backed, Capabilities, Capability, Cursor, Error, ErrorKind, FencingToken, Holder, Holders,
    LockGuard, LockKey, LockOptions, Locker, LockerExt, LossReason, Mode, Page, ReleaseOutcome, Result, Wait,
};
/// The driver's client, for [`RedisReentrant::from_client`].
pub use leasehold_redis::fred::clients::Client;

pub use backend::SessionBackend;
pub use builder::RedisReentrantBuilder;
pub use locker::RedisReentrant;
pub use session::Session;
