//! The shared suite, on the server that `LEASEHOLD_TEST_REDIS` names. Every contender is a session of its own.

use std::env;
use std::process::ExitCode;

use async_trait::async_trait;
use leasehold_redis_reentrant::core::conformance::{self, Fixture};
use leasehold_redis_reentrant::{Capabilities, RedisReentrant, Result, SessionBackend};

const URL: &str = "LEASEHOLD_TEST_REDIS";

struct Redis {
    url: Option<String>,
}

#[async_trait]
impl Fixture for Redis {
    type Backend = SessionBackend;

    fn capabilities(&self) -> Capabilities {
        RedisReentrant::claims()
    }

    async fn available(&self) -> std::result::Result<(), String> {
        let url = self.url.as_ref().ok_or_else(|| format!("set {URL} to a redis:// URL"))?;
        RedisReentrant::connect(url).await.map_err(|error| error.to_string())?.close().await;
        Ok(())
    }

    async fn connect(&self, namespace: &str) -> Result<SessionBackend> {
        let url = self.url.clone().unwrap_or_default();
        RedisReentrant::builder().url(url).namespace(namespace).backend().await
    }
}

fn main() -> ExitCode {
    conformance::exclusive(Redis { url: env::var(URL).ok() })
}
