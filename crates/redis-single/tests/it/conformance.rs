//! The shared suite, on the server that `LEASEHOLD_TEST_REDIS` names and on the Cluster that `LEASEHOLD_TEST_REDIS_CLUSTER`
//! names; on the server also with each fast path switched off.

use std::env;

use async_trait::async_trait;
use leasehold_redis_single::core::conformance::{Fixture, Suite};
use leasehold_redis_single::{Capabilities, Capability, RedisSingle, RedisSingleBackend, Result};
use leasehold_testkit::if_deep;

pub(crate) fn suite() -> Suite {
    let server = Redis::named_by("LEASEHOLD_TEST_REDIS");
    let cluster = Redis::named_by("LEASEHOLD_TEST_REDIS_CLUSTER");
    let variants = [
        ("queue_off", Redis { queue: false, ..server.clone() }),
        ("group_commit_off", Redis { group_commit: false, ..server.clone() }),
        ("queue_and_group_commit_off", Redis { queue: false, group_commit: false, ..server.clone() }),
    ];
    Suite::exclusive([("", server), ("cluster", cluster)].into_iter().chain(if_deep(variants)))
}

#[derive(Clone)]
struct Redis {
    variable: &'static str,
    url: Option<String>,
    queue: bool,
    group_commit: bool,
}

impl Redis {
    fn named_by(variable: &'static str) -> Self {
        Self { variable, url: env::var(variable).ok(), queue: true, group_commit: true }
    }
}

#[async_trait]
impl Fixture for Redis {
    type Backend = RedisSingleBackend;

    fn capabilities(&self) -> Capabilities {
        let claims = RedisSingle::claims();
        if self.queue { claims } else { claims.without(Capability::Queue, "switched off") }
    }

    async fn available(&self) -> std::result::Result<(), String> {
        if self.url.is_none() {
            return Err(format!("set {} to the URL of a Redis", self.variable));
        }
        let locks = self.connect("leasehold-conformance").await.map_err(|error| error.to_string())?;
        RedisSingle::from(locks).close().await;
        Ok(())
    }

    async fn connect(&self, namespace: &str) -> Result<RedisSingleBackend> {
        let url = self.url.clone().unwrap_or_default();
        let builder = RedisSingle::builder().url(url).namespace(namespace);
        builder.group_commit(self.group_commit).queue(self.queue).backend().await
    }
}
