//! `mysql-unique` on one server.

use leasehold_mysql_unique::MysqlUnique;

use super::decks::{ON_THE_WAY, TO_A_DATABASE, TO_A_SERVER};
use super::exemptions::CLOCK_AHEAD;
use super::setup::{Setup, Stays, TTL_MS};
use crate::locks::{Locks, patiently};
use crate::stores;

pub(super) static SETUP: Setup = Setup {
    name: "mysql-unique",
    backend: "mysql-unique",
    in_words: "One MariaDB.",
    start: |folder, library| stores::start_mariadb(folder, library, |url| Box::pin(MysqlUnique::migrate(url))),
    connect: |url| Box::pin(async move { Ok(Locks::exclusive(patiently(|| MysqlUnique::connect(url)).await?)) }),
    repair: None,
    ttl_ms: TTL_MS,
    deck: &[ON_THE_WAY, TO_A_SERVER, TO_A_DATABASE],
    either: None,
    exempt: &[CLOCK_AHEAD],
    stays: Stays { entries: 1, more_of_readers: 0, bytes: 200 },
};
