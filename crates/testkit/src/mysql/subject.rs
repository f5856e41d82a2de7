use std::time::Duration;

use leasehold_core::{Backed, Backend, Result};

use crate::together;
use leasehold_mysql::ConnectionSettings;

/// A backend on this server, for the tests that are the same for all of them.
pub trait Subject: Send + Sync + 'static {
    type Store: Backend;
    type Locks: Backed<Backend = Self::Store> + Clone;
    /// The table of the keys.
    const TABLE: &'static str;
    /// The column in which the lease of a writer ends.
    const EXPIRY: &'static str;
    /// All that a user needs who only locks, as `GRANT` takes it.
    const RIGHTS: &'static [&'static str];
    /// The statements of an exclusive cycle.
    const CYCLE: u64;

    fn connect(access: ConnectionSettings) -> impl Future<Output = Result<Self::Locks>> + Send;
    fn store(access: ConnectionSettings) -> impl Future<Output = Result<Self::Store>> + Send;
    fn migrate(access: ConnectionSettings) -> impl Future<Output = Result<()>> + Send;
    fn gc(locks: &Self::Locks, older_than: Duration) -> impl Future<Output = Result<u64>> + Send;

    fn connect_to(url: &str) -> impl Future<Output = Result<Self::Locks>> + Send {
        Self::connect(ConnectionSettings::default().url(url))
    }

    fn migrate_at(url: &str) -> impl Future<Output = Result<()>> + Send {
        Self::migrate(ConnectionSettings::default().url(url))
    }

    /// The statements that fill the tables with so many rows of keys `key/00000001` and so on. Of each so many, one key is
    /// held for a day and one has been idle for long; all others were free a moment ago.
    fn fill(rows: u64, each: u64) -> Vec<String>;

    /// What else happens in the life of a key, by two clients.
    fn more_life(_ours: &Self::Locks, _theirs: &Self::Locks, _key: &str) -> impl Future<Output = ()> + Send {
        async {}
    }

    /// Many tasks of several clients on one key at once; fails if any two should not be there together.
    fn crowd(clients: &[Self::Locks], key: &str) -> impl Future<Output = ()> + Send {
        together::crowd(clients, key, 16, 5)
    }
}
