// The examples are those of this crate alone: `tests/search` compiles the file once more.
#![cfg(not(all(doctest, leasehold_search)))]
#![doc = include_str!("../README.md")]

// In reading order: what a program uses,
pub mod blocking;
mod busy;
mod capabilities;
mod connect;
mod defaults;
mod election;
mod error;
mod ext;
mod ext_rw;
mod guard;
mod holder;
mod home;
mod key;
mod label;
mod locker;
mod locks;
mod loss;
mod mode;
mod options;
mod semaphore;
mod token;
// what a backend author writes, and what is done once for every backend.
mod backend;
pub mod clock;
#[cfg(feature = "conformance")]
pub mod conformance;
mod engine;
mod finding;
mod future;
mod group_commit;
#[cfg(feature = "serde")]
mod json;
mod kind;
mod memory;
mod memory_backend;
mod memory_faults;
mod namespace;
mod patience;
mod printable;
mod random;
mod reference;
mod secrets;

pub use backend::{
    Attempt, Backend, Claim, GrantRef, LeaseStatus, Notification, Notifications, OwnerId, Renewal, SessionId,
    SharedBackend, Subscription,
};
pub use busy::{Busy, OrBusy};
pub use capabilities::{Capabilities, Capability};
pub use clock::{Clock, Moment};
pub use connect::connect_within;
pub use defaults::Defaults;
pub use election::{Election, Leader, Leadership};
pub use engine::{Backed, Engine, EngineOptions, LocalHandoff, Waiters, WeakEngine, describe_metrics};
pub use error::{Error, ErrorKind, Result};
pub use ext::{IntoLockKey, LockerExt};
pub use ext_rw::RwLockerExt;
pub use finding::{Finding, Health};
pub use future::BoxFuture;
pub use group_commit::{Answers, GroupCommit, Limits, Operations, Queue, Turns};
pub use guard::{DetachedLock, Guard, GuardHandle, LockGuard, ReadGuard};
pub use holder::{Cursor, Holder, Holders, Page};
pub use home::Home;
pub use key::LockKey;
pub use kind::{Connect, Examine, Kind, Nodes, Tables, Target};
pub use label::default_label;
pub use locker::{Admin, Locker, RwLocker};
pub use locks::Locks;
pub use loss::{LossReason, ReleaseOutcome};
pub use memory::Memory;
pub use memory_backend::MemoryBackend;
pub use mode::{Exclusive, GuardMode, Mode, Shared};
pub use namespace::Namespace;
pub use options::{LockOptions, Wait};
pub use random::jittered;
pub use secrets::Secrets;
pub use semaphore::Semaphore;
pub use token::FencingToken;
