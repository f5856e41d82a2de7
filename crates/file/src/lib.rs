#![doc = include_str!("../README.md")]

#[cfg(not(unix))]
compile_error!("leasehold-file needs flock and file modes, so it builds on Unix systems only");

// A module imports only from modules further down: the public types (builder, locker, backend),
mod backend;
mod builder;
mod kind;
mod locker;
// the operations of the trait `Backend`,
mod acquire;
mod admin;
mod downgrade;
mod renew;
// what makes a directory unsafe,
mod examination;
// what these operations work on (store, directory, grant, ...),
mod counter_lock;
mod grant;
mod idle_files;
mod key_files;
mod lock_directory;
mod sessions;
mod store;
// and the contents and properties of single files.
mod address;
mod counter;
mod dir_options;
mod error;
mod file_id;
mod file_lock;
mod lock_file;
mod name;
mod open_dir;
mod record;
mod trust;

pub use leasehold_core::{
    self as core, Admin, Backed, Capabilities, Capability, Cursor, Election, Error, ErrorKind, FencingToken, Guard,
    GuardHandle, Holder, Holders, Leader, Leadership, LockGuard, LockKey, LockOptions, Locker, LockerExt, LossReason,
    Mode, Page, ReadGuard, ReleaseOutcome, Result, RwLocker, RwLockerExt, Semaphore, Wait,
};

pub use self::backend::FileBackend;
pub use self::builder::FileLocksBuilder;
pub use self::kind::KIND;
pub use self::locker::FileLocks;
