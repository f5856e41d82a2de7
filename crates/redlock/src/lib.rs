#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]

// In reading order: how to connect, the public type, and the condition of nodes,
mod builder;
mod kind;
mod locker;
mod node_state;
// the operations of the backend,
mod backend;
// each of them decided by a majority,
mod acquire;
mod admin;
mod notifications;
mod release;
mod renew;
mod repair;
// what they share, how votes are counted, and what goes on in the background,
mod attempt;
mod background_tasks;
mod batch;
mod fleet;
mod pending_releases;
mod store;
mod tally;
mod upkeep;
mod vote;
// and the nodes: how they come together, and how one is asked.
mod answer;
mod error;
mod examination;
mod majority;
mod membership;
mod node;
mod node_clock;
mod nodes;
mod numbers;

pub use leasehold_core::{
    self as core, Admin, Backed, Capabilities, Capability, Cursor, DetachedLock, Election, Error, ErrorKind,
    FencingToken, GuardHandle, Holder, Holders, Leader, Leadership, LocalHandoff, LockGuard, LockKey, LockOptions,
    Locker, LockerExt, LossReason, Mode, Page, ReleaseOutcome, Result, Semaphore, Wait,
};
/// The driver's client, for [`Redlock::from_clients`].
pub use leasehold_redis::fred::clients::Client;

pub use backend::RedlockBackend;
pub use builder::RedlockBuilder;
pub use error::QuorumNotReached;
pub use kind::KIND;
pub use locker::Redlock;
pub use node_state::{NodeCondition, NodeState};
