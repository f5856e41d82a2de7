//! The conformance suite on the server that `LEASEHOLD_TEST_MYSQL` names: the URL of a database in which tables may be
//! created. It runs with the advisory queue and without it, and with group commit and without it.

use leasehold_core::Capability;
use leasehold_core::conformance::Suite;
use leasehold_mysql_unique::{MysqlUnique, MysqlUniqueBackend};
use leasehold_testkit::{Store, if_deep};

pub(crate) fn suite() -> Suite {
    let variants = [("advisory_queue", mysql(true, true)), ("group_commit_off", mysql(false, false))];
    Suite::exclusive([("", mysql(false, true))].into_iter().chain(if_deep(variants)))
}

fn mysql(advisory_queue: bool, group_commit: bool) -> Store<MysqlUniqueBackend> {
    let claims = MysqlUnique::claims();
    let claims = if advisory_queue { claims.with(Capability::Wakeup) } else { claims };
    let server = Store::named_by("LEASEHOLD_TEST_MYSQL", claims, move |url, namespace| {
        let builder = MysqlUnique::builder().url(url).namespace(namespace).group_commit(group_commit);
        let builder = builder.advisory_queue(advisory_queue);
        Box::pin(async move { builder.backend().await })
    });
    let server = server.prepared(|url| Box::pin(async move { MysqlUnique::migrate(&url).await }));
    server.signals_in_turn(advisory_queue)
}
