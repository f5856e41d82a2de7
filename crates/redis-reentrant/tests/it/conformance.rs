//! The shared suite, on the server that `LEASEHOLD_TEST_REDIS` names, there also without group commit, and on the Cluster
//! that `LEASEHOLD_TEST_REDIS_CLUSTER` names.

use std::env;

use async_trait::async_trait;
use leasehold_redis_reentrant::core::conformance::{Fixture, Suite};
use leasehold_redis_reentrant::{Capabilities, RedisReentrant, Result, SessionBackend};
use leasehold_testkit::if_deep;

pub(crate) fn suite() -> Suite {
    let server = Redis::named_by("LEASEHOLD_TEST_REDIS");
    let cluster = Redis::named_by("LEASEHOLD_TEST_REDIS_CLUSTER");
    let variants = [("group_commit_off", Redis { group_commit: false, ..server.clone() }), ("cluster", cluster)];
    Suite::exclusive([("", server)].into_iter().chain(if_deep(variants)))
}

#[derive(Clone)]
struct Redis {
    variable: &'static str,
    url: Option<String>,
    group_commit: bool,
}

impl Redis {
    fn named_by(variable: &'static str) -> Self {
        Self { variable, url: env::var(variable).ok(), group_commit: true }
    }
}

#[async_trait]
impl Fixture for Redis {
    type Backend = SessionBackend;

    fn capabilities(&self) -> Capabilities {
        RedisReentrant::claims()
    }

    async fn available(&self) -> std::result::Result<(), String> {
        let url = self.url.as_ref().ok_or_else(|| format!("set {} to the URL of a Redis", self.variable))?;
        RedisReentrant::connect(url).await.map_err(|error| error.to_string())?.close().await;
        Ok(())
    }

    async fn connect(&self, namespace: &str) -> Result<SessionBackend> {
        let url = self.url.clone().unwrap_or_default();
        let builder = RedisReentrant::builder().url(url).namespace(namespace);
        builder.group_commit(self.group_commit).backend().await
    }
}
