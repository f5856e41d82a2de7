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

pub use leasehold_core::{
    self as core, Admin, Backed, Capabilities, Capability, Cursor, DetachedLock, Election, Error, ErrorKind,
    FencingToken, GuardHandle, Holder, Holders, Leader, Leadership, LocalHandoff, LockGuard, LockKey, LockOptions,
    Locker, LockerExt, LossReason, Mode, Page, ReleaseOutcome, Result, Semaphore, Wait,
};
/// The driver's client, for [`RedisSingle::from_client`].
pub use leasehold_redis::fred::clients::Client;

pub use backend::RedisSingleBackend;
pub use builder::RedisSingleBuilder;
pub use kind::KIND;
pub use locker::RedisSingle;
