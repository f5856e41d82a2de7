//! The conformance suite on the server that `LEASEHOLD_TEST_POSTGRES` names: the URL of a database in which a schema may be
//! created. It runs with group commit and without it, and with notifications and without them.

use leasehold_core::Capability;
use leasehold_core::conformance::Suite;
use leasehold_postgres::{Postgres, PostgresBackend};
use leasehold_testkit::{Store, if_deep};

pub(crate) fn suite() -> Suite {
    let variants = [("group_commit_off", postgres(false, true)), ("listen_off", postgres(true, false))];
    Suite::shared([("", postgres(true, true))].into_iter().chain(if_deep(variants)))
}

fn postgres(group_commit: bool, listen: bool) -> Store<PostgresBackend> {
    let claims = Postgres::claims();
    let claims = if listen { claims } else { claims.without(Capability::Wakeup, "listen=false: waiters poll") };
    let server = Store::named_by("LEASEHOLD_TEST_POSTGRES", claims, move |url, namespace| {
        let url = format!("{url}?listen={listen}");
        let builder = Postgres::builder().url(url).namespace(namespace).group_commit(group_commit);
        Box::pin(async move { builder.backend().await })
    });
    server.prepared(|url| Box::pin(async move { Postgres::migrate(&url).await }))
}
