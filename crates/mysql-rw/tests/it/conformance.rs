//! The conformance suite, with group commit and without it. `LEASEHOLD_TEST_MYSQL` has the URL of a database in which tables may be created.

use leasehold_core::conformance::Suite;
use leasehold_mysql_rw::{MysqlRw, MysqlRwBackend};
use leasehold_testkit::{Store, if_deep};

pub(crate) fn suite() -> Suite {
    Suite::shared([("", mysql(true))].into_iter().chain(if_deep([("group_commit_off", mysql(false))])))
}

fn mysql(group_commit: bool) -> Store<MysqlRwBackend> {
    let server = Store::named_by("LEASEHOLD_TEST_MYSQL", MysqlRw::claims(), move |url, namespace| {
        let builder = MysqlRw::builder().url(url).namespace(namespace).group_commit(group_commit);
        Box::pin(async move { builder.backend().await })
    });
    server.prepared(|url| Box::pin(async move { MysqlRw::migrate(&url).await })).steps_are_not_atomic()
}
