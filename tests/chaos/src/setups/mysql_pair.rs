//! `mysql-unique` on a primary and its replica.

use leasehold_mysql_unique::MysqlUnique;

use super::setup::{Setup, Stays, TTL_MS};
use crate::fault::Fault;
use crate::locks::{Locks, patiently};
use crate::stores;

pub(super) static SETUP: Setup = Setup {
    name: "mysql-pair",
    backend: "mysql-unique",
    in_words: "`mysql-unique` on a MariaDB and its replica, at an address that an operator moves.",
    start: |folder, _| stores::start_mariadb_pair(folder, |url| Box::pin(MysqlUnique::migrate(url))),
    connect: |url| Box::pin(async move { Ok(Locks::exclusive(patiently(|| MysqlUnique::connect(url)).await?)) }),
    repair: None,
    ttl_ms: TTL_MS,
    deck: &[&[Fault::SwitchOver, Fault::StopServer, Fault::KillConnections, Fault::ForceRelease]],
    either: None,
    exempt: &[],
    stays: Stays { entries: 2, more_of_readers: 0, bytes: 2 * 200 },
};
