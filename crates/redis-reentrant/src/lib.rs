#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]

// In reading order: how to connect, the public types,
mod builder;
mod kind;
mod locker;
mod session;
// the operations of the backend,
mod backend;
// each of them with its scripts,
mod acquire;
mod admin;
mod release;
mod renew;
// and what they share.
mod store;

pub use leasehold_core::{
    self as core, Admin, Backed, Capabilities, Capability, Cursor, Election, Error, ErrorKind, FencingToken,
    GuardHandle, Holder, Holders, Leader, Leadership, LockGuard, LockKey, LockOptions, Locker, LockerExt, LossReason,
    Mode, Page, ReleaseOutcome, Result, Semaphore, Wait,
};
/// The driver's client, for [`RedisReentrant::from_client`].
pub use leasehold_redis::fred::clients::Client;

pub use backend::SessionBackend;
pub use builder::RedisReentrantBuilder;
pub use kind::KIND;
pub use locker::RedisReentrant;
pub use session::Session;
