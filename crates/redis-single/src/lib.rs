#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]

// In reading order: the public type and how to connect it,
mod builder;
mod locker;
// and what is done in Redis, each step one script.
mod backend;

pub use leasehold_core::{
    self as core, Admin, Backed, Capabilities, Capability, Cursor, DetachedLock, Error, ErrorKind, FencingToken,
    Holder, Holders, LocalHandoff, LockGuard, LockKey, LockOptions, Locker, LockerExt, LossReason, Mode, Page,
    ReleaseOutcome, Result, Wait,
};
/// The driver's client, for [`RedisSingle::from_client`].
pub use leasehold_redis::fred::clients::Client;

pub use backend::RedisSingleBackend;
pub use builder::RedisSingleBuilder;
pub use locker::RedisSingle;
