use leasehold_core::{Kind, Locks, Tables};

use crate::examination::examine;
use crate::locker::Postgres;

/// `postgres:`, for programs that find their store by the scheme of a URL.
pub const KIND: Kind = Kind::new("postgres", &["postgres"], Postgres::claims, |target| {
    Box::pin(async move { Postgres::connect(target.url).await.map(Locks::shared) })
})
.aliases(&["postgresql"])
.package("leasehold-postgres")
.purpose("a PostgreSQL, with readers beside writers")
.takes_password()
.examine(|url| Box::pin(examine(url)))
.cure("connect to the primary, and run the GRANT statements of the store's README")
.tables(Tables {
    migrate: |url| Box::pin(Postgres::migrate(url)),
    gc: |url, older_than| {
        Box::pin(async move {
            let locks = Postgres::connect(url).await?;
            let rows = locks.gc(older_than).await;
            locks.close().await;
            rows
        })
    },
});
