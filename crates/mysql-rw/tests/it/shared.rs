//! The tests that every backend on MySQL or MariaDB has.

use std::time::Duration;

use leasehold_core::Result;
use leasehold_mysql::ConnectionSettings;
use leasehold_mysql_rw::{MysqlRw, MysqlRwBackend, MysqlRwBuilder};
use leasehold_testkit::mysql::Subject;
use leasehold_testkit::{crowd_of_both, readers_life};

pub(crate) struct Rw;

impl Subject for Rw {
    type Store = MysqlRwBackend;
    type Locks = MysqlRw;
    const TABLE: &'static str = "leasehold_rw";
    const EXPIRY: &'static str = "writer_expires_at";
    const RIGHTS: &'static [&'static str] = &[
        "SELECT, INSERT, UPDATE ON leasehold.leasehold_rw",
        "SELECT, INSERT, UPDATE, DELETE ON leasehold.leasehold_rw_readers",
    ];
    /// A claim, a count of the readers, and a release.
    const CYCLE: u64 = 3;

    async fn connect(settings: ConnectionSettings) -> Result<MysqlRw> {
        MysqlRwBuilder::from(settings).connect().await
    }

    async fn store(settings: ConnectionSettings) -> Result<MysqlRwBackend> {
        MysqlRwBuilder::from(settings).backend().await
    }

    async fn migrate(settings: ConnectionSettings) -> Result<()> {
        MysqlRwBuilder::from(settings).migrate().await
    }

    /// Half of the rows are keys, and half are readers. Each reader that died belongs to a key of its own.
    fn fill(rows: u64, each: u64) -> Vec<String> {
        let name = "CONCAT('leasehold', CHAR(0), 'key/', LPAD(seq, 8, '0'))";
        let half = rows / 2;
        vec![
            format!(
                "INSERT INTO leasehold.leasehold_rw SELECT {name}, IF(seq % {each} = 2, 1000, UNIX_TIMESTAMP() * 16000), 0, 0, IF(seq % {each} = 1, UNHEX(MD5(seq)), NULL), NULL, UTC_TIMESTAMP(6) + INTERVAL 1 DAY, \
                 '2000-01-01', '2000-01-01', '2000-01-01', \
                 NULL, NULL, NULL FROM leasehold.seq_1_to_{half}"
            ),
            format!(
                "INSERT INTO leasehold.leasehold_rw_readers SELECT {name}, UNHEX(MD5(seq)), 1000, \
                 UTC_TIMESTAMP(6) + INTERVAL IF(seq % {each} = 2, -9, IF(seq % {each} = 1, 1, 0)) DAY, \
                 UTC_TIMESTAMP(6), NULL, NULL, NULL FROM leasehold.seq_{half}_to_{rows}"
            ),
        ]
    }

    async fn gc(locks: &MysqlRw, older_than: Duration) -> Result<u64> {
        locks.gc(older_than).await
    }

    async fn more_life(ours: &MysqlRw, theirs: &MysqlRw, key: &str) {
        readers_life(ours, theirs, key).await;
    }

    async fn crowd(clients: &[MysqlRw], key: &str) {
        crowd_of_both(clients, key, 18, 5).await;
    }
}

leasehold_testkit::shared_tests!(Rw);
