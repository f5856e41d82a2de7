#![doc = include_str!("../README.md")]

#[cfg(not(unix))]
compile_error!("leasehold-file needs flock and file modes, so it builds on Unix systems only");

// In reading order: the public type and where its locks are,
mod address;
mod locks;
// the steps of the protocol,
mod acquire;
mod admin;
mod backend;
mod downgrade;
mod presence;
// and what they write.
mod counter;
mod directory;
mod fault;
mod flocked;
mod folder;
mod idle;
mod layout;
mod name;
mod record;
mod session;
mod trust;
mod turn;

pub use leasehold_core::{
    self as core, Admin, Backed, Capabilities, Capability, Cursor, Error, ErrorKind, FencingToken, Guard, Holder,
    Holders, LockGuard, LockKey, LockOptions, Locker, LockerExt, LossReason, Mode, Page, ReadGuard, ReleaseOutcome,
    Result, RwLocker, RwLockerExt, Wait,
};

pub use self::backend::FileBackend;
pub use self::locks::{FileLocks, FileLocksBuilder};
