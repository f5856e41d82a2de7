//! The tests that every backend on MySQL or MariaDB has.

use std::time::Duration;

use leasehold_core::Result;
use leasehold_mysql::ConnectionSettings;
use leasehold_mysql_unique::{MysqlUnique, MysqlUniqueBackend, MysqlUniqueBuilder};
use leasehold_testkit::mysql::Subject;

pub(crate) struct Unique;

impl Subject for Unique {
    type Store = MysqlUniqueBackend;
    type Locks = MysqlUnique;
    const TABLE: &'static str = "leasehold_locks";
    const EXPIRY: &'static str = "expires_at";
    const RIGHTS: &'static [&'static str] = &["SELECT, INSERT, UPDATE ON leasehold.leasehold_locks"];
    /// A claim and a release.
    const CYCLE: u64 = 2;

    async fn connect(settings: ConnectionSettings) -> Result<MysqlUnique> {
        MysqlUniqueBuilder::from(settings).connect().await
    }

    async fn store(settings: ConnectionSettings) -> Result<MysqlUniqueBackend> {
        MysqlUniqueBuilder::from(settings).backend().await
    }

    async fn migrate(settings: ConnectionSettings) -> Result<()> {
        MysqlUniqueBuilder::from(settings).migrate().await
    }

    fn fill(rows: u64, each: u64) -> Vec<String> {
        vec![format!(
            "INSERT INTO leasehold.leasehold_locks SELECT CONCAT('leasehold', CHAR(0), 'key/', LPAD(seq, 8, '0')), \
             UNHEX(MD5(seq)), IF(seq % {each} = 2, 1000, UNIX_TIMESTAMP() * 16000), \
             UTC_TIMESTAMP(6) + INTERVAL IF(seq % {each} = 1, 1, -1) DAY, UTC_TIMESTAMP(6), NULL, NULL, NULL \
             FROM leasehold.seq_1_to_{rows}"
        )]
    }

    async fn gc(locks: &MysqlUnique, older_than: Duration) -> Result<u64> {
        locks.gc(older_than).await
    }
}

leasehold_testkit::shared_tests!(Unique);
