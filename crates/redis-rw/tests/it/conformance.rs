//! The shared suite, on the server that `LEASEHOLD_TEST_REDIS` names and on the Cluster that `LEASEHOLD_TEST_REDIS_CLUSTER`
//! names; on the server also with group commit off, and with each grant from the queue asked for once more.

use std::env;

use async_trait::async_trait;
use leasehold_redis_rw::conformance::{Fixture, Suite};
use leasehold_redis_rw::{Capabilities, RedisRw, RedisRwBackend, Result};
use leasehold_testkit::if_deep;

pub(crate) fn suite() -> Suite {
    let server = Redis::named_by("LEASEHOLD_TEST_REDIS");
    let cluster = Redis::named_by("LEASEHOLD_TEST_REDIS_CLUSTER");
    let variants = [
        ("group_commit_off", Redis { group_commit: false, ..server.clone() }),
        ("grants_verified", Redis { verify_grants: true, ..server.clone() }),
        ("cluster", cluster),
    ];
    Suite::shared([("", server)].into_iter().chain(if_deep(variants)))
}

#[derive(Clone)]
struct Redis {
    variable: &'static str,
    url: Option<String>,
    group_commit: bool,
    verify_grants: bool,
}

impl Redis {
    fn named_by(variable: &'static str) -> Self {
        Self { variable, url: env::var(variable).ok(), group_commit: true, verify_grants: false }
    }
}

#[async_trait]
impl Fixture for Redis {
    type Backend = RedisRwBackend;

    fn capabilities(&self) -> Capabilities {
        RedisRw::claims()
    }

    async fn available(&self) -> std::result::Result<(), String> {
        if self.url.is_none() {
            return Err(format!("set {} to the URL of a Redis", self.variable));
        }
        let locks = self.connect("leasehold-conformance").await.map_err(|error| error.to_string())?;
        RedisRw::from(locks).close().await;
        Ok(())
    }

    async fn connect(&self, namespace: &str) -> Result<RedisRwBackend> {
        let url = self.url.clone().unwrap_or_default();
        let builder = RedisRw::builder().url(url).namespace(namespace);
        builder.group_commit(self.group_commit).verify_grants(self.verify_grants).backend().await
    }
}
