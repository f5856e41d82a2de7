#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]

// In reading order: the public type and how to connect it,
mod builder;
mod condition;
mod locker;
// what is decided by a majority,
mod attempt;
mod backend;
mod heal;
mod holders;
mod notifications;
mod vote;
// and how one node is asked, and how the nodes come together.
mod answer;
mod background;
mod debts;
mod fleet;
mod node;

pub use leasehold_core::{
    self as core, Admin, Backed, Capabilities, Capability, Cursor, DetachedLock, Error, ErrorKind, FencingToken,
    Holder, Holders, LocalHandoff, LockGuard, LockKey, LockOptions, Locker, LockerExt, LossReason, Mode, Page,
    ReleaseOutcome, Result, Wait,
};
/// The driver's client, for [`Redlock::from_clients`].
pub use leasehold_redis::fred::clients::Client;

pub use backend::RedlockBackend;
pub use builder::RedlockBuilder;
pub use condition::{NodeCondition, NodeState, QuorumNotReached};
pub use locker::Redlock;
