//! The shared suite, on the server that `LEASEHOLD_TEST_REDIS` names.

use std::env;
use std::process::ExitCode;

use async_trait::async_trait;
use leasehold_redis_single::core::conformance::{self, Fixture};
use leasehold_redis_single::{Capabilities, RedisSingle, RedisSingleBackend, Result};

const URL: &str = "LEASEHOLD_TEST_REDIS";

struct Redis {
    url: Option<String>,
}

#[async_trait]
impl Fixture for Redis {
    type Backend = RedisSingleBackend;

    fn capabilities(&self) -> Capabilities {
        RedisSingle::claims()
    }

    async fn available(&self) -> std::result::Result<(), String> {
        if self.url.is_none() {
            return Err(format!("set {URL} to a redis:// URL"));
        }
        let locks = self.connect("leasehold-conformance").await.map_err(|error| error.to_string())?;
        RedisSingle::from(locks).close().await;
        Ok(())
    }

    async fn connect(&self, namespace: &str) -> Result<RedisSingleBackend> {
        let url = self.url.clone().unwrap_or_default();
        RedisSingle::builder().url(url).namespace(namespace).backend().await
    }
}

fn main() -> ExitCode {
    conformance::exclusive(Redis { url: env::var(URL).ok() })
}
