use leasehold_core::{Kind, Locks, Tables};
use leasehold_mysql::{ExaminedTable, examine};

use crate::builder::TABLE_NAME;
use crate::locker::MysqlUnique;
use crate::sql::TABLE;

/// `mysql:`, for programs that find their store by the scheme of a URL.
pub const KIND: Kind = Kind::new("mysql-unique", &["mysql"], MysqlUnique::claims, |target| {
    Box::pin(async move { MysqlUnique::connect(target.url).await.map(Locks::exclusive) })
})
.package("leasehold-mysql-unique")
.purpose("a MySQL or MariaDB")
.takes_password()
.examine(|url| examine(url, TABLE_NAME, &EXAMINED))
.cure(leasehold_mysql::CURE)
.tables(Tables {
    migrate: |url| Box::pin(MysqlUnique::migrate(url)),
    gc: |url, older_than| {
        Box::pin(async move {
            let locks = MysqlUnique::connect(url).await?;
            let rows = locks.gc(older_than).await;
            locks.close().await;
            rows
        })
    },
});

/// The table, and what taking a lock does to it.
const EXAMINED: [ExaminedTable; 1] = [ExaminedTable {
    schema: &TABLE,
    name: |first| Ok(first.clone()),
    rights: &["SELECT", "INSERT", "UPDATE"],
    ends: "expires_at",
}];
