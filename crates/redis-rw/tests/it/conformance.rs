//! The shared suite, on the server that `LEASEHOLD_TEST_REDIS` names and on the Cluster that `LEASEHOLD_TEST_REDIS_CLUSTER`
//! names; on the server also with group commit off, and with each grant from the queue asked for once more.

use leasehold_redis_rw::conformance::Suite;
use leasehold_redis_rw::{RedisRw, RedisRwBackend};
use leasehold_testkit::{Store, if_deep};

const SERVER: &str = "LEASEHOLD_TEST_REDIS";

pub(crate) fn suite() -> Suite {
    let variants = [
        ("group_commit_off", redis(SERVER, false, false)),
        ("grants_verified", redis(SERVER, true, true)),
        ("cluster", redis("LEASEHOLD_TEST_REDIS_CLUSTER", true, false)),
    ];
    Suite::shared([("", redis(SERVER, true, false))].into_iter().chain(if_deep(variants)))
}

fn redis(variable: &'static str, group_commit: bool, verify_grants: bool) -> Store<RedisRwBackend> {
    Store::named_by(variable, RedisRw::claims(), move |url, namespace| {
        let builder = RedisRw::builder().url(url).namespace(namespace);
        let builder = builder.group_commit(group_commit).verify_grants(verify_grants);
        Box::pin(async move { builder.backend().await })
    })
}
