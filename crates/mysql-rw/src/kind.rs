use leasehold_core::{Kind, Locks, Tables};
use leasehold_mysql::{ExaminedTable, examine};

use crate::builder::TABLE_NAME;
use crate::locker::MysqlRw;
use crate::sql::{LOCKS, READERS, readers_of};

/// `mysql-rw:` in place of `mysql:`, for programs that find their store by the scheme of a URL.
pub const KIND: Kind = Kind::new("mysql-rw", &["mysql-rw"], MysqlRw::claims, |target| {
    Box::pin(async move { MysqlRw::connect(&as_mysql(target.url)).await.map(Locks::shared) })
})
.package("leasehold-mysql-rw")
.purpose("a MySQL or MariaDB, with readers beside writers")
.takes_password()
.examine(|url| Box::pin(async move { examine(&as_mysql(url), TABLE_NAME, &EXAMINED).await }))
.cure(leasehold_mysql::CURE)
.tables(Tables {
    migrate: |url| Box::pin(async move { MysqlRw::migrate(&as_mysql(url)).await }),
    gc: |url, older_than| {
        Box::pin(async move {
            let locks = MysqlRw::connect(&as_mysql(url)).await?;
            let rows = locks.gc(older_than).await;
            locks.close().await;
            rows
        })
    },
});

/// The tables, and what taking a lock does to them.
const EXAMINED: [ExaminedTable; 2] = [
    ExaminedTable {
        schema: &LOCKS,
        name: |first| Ok(first.clone()),
        rights: &["SELECT", "INSERT", "UPDATE"],
        ends: "writer_expires_at",
    },
    ExaminedTable {
        schema: &READERS,
        name: readers_of,
        rights: &["SELECT", "INSERT", "UPDATE", "DELETE"],
        ends: "expires_at",
    },
];

/// The URL as the crate expects it.
fn as_mysql(url: &str) -> String {
    url.replacen("mysql-rw:", "mysql:", 1)
}
