//! The shared suite, on the server that `LEASEHOLD_TEST_REDIS` names, there also without group commit, and on the Cluster
//! that `LEASEHOLD_TEST_REDIS_CLUSTER` names.

use leasehold_redis_reentrant::core::conformance::Suite;
use leasehold_redis_reentrant::{RedisReentrant, SessionBackend};
use leasehold_testkit::{Store, if_deep};

const SERVER: &str = "LEASEHOLD_TEST_REDIS";

pub(crate) fn suite() -> Suite {
    let cluster = redis("LEASEHOLD_TEST_REDIS_CLUSTER", true);
    let variants = [("group_commit_off", redis(SERVER, false)), ("cluster", cluster)];
    Suite::exclusive([("", redis(SERVER, true))].into_iter().chain(if_deep(variants)))
}

fn redis(variable: &'static str, group_commit: bool) -> Store<SessionBackend> {
    Store::named_by(variable, RedisReentrant::claims(), move |url, namespace| {
        let builder = RedisReentrant::builder().url(url).namespace(namespace).group_commit(group_commit);
        Box::pin(async move { builder.backend().await })
    })
}
