//! The shared suite, on the server that `LEASEHOLD_TEST_REDIS` names and on the Cluster that `LEASEHOLD_TEST_REDIS_CLUSTER`
//! names; on the server also with each fast path switched off.

use leasehold_redis_single::core::conformance::Suite;
use leasehold_redis_single::{Capability, RedisSingle, RedisSingleBackend};
use leasehold_testkit::{Store, if_deep};

const SERVER: &str = "LEASEHOLD_TEST_REDIS";

pub(crate) fn suite() -> Suite {
    let cluster = redis("LEASEHOLD_TEST_REDIS_CLUSTER", true, true);
    let variants = [
        ("queue_off", redis(SERVER, false, true)),
        ("group_commit_off", redis(SERVER, true, false)),
        ("queue_and_group_commit_off", redis(SERVER, false, false)),
    ];
    Suite::exclusive([("", redis(SERVER, true, true)), ("cluster", cluster)].into_iter().chain(if_deep(variants)))
}

fn redis(variable: &'static str, queue: bool, group_commit: bool) -> Store<RedisSingleBackend> {
    let claims = RedisSingle::claims();
    let claims = if queue { claims } else { claims.without(Capability::Queue, "switched off") };
    Store::named_by(variable, claims, move |url, namespace| {
        let builder = RedisSingle::builder().url(url).namespace(namespace).group_commit(group_commit).queue(queue);
        Box::pin(async move { builder.backend().await })
    })
}
