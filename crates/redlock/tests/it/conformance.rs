//! The shared suite, with and without group commit, on the five servers that `LEASEHOLD_TEST_REDLOCK` names.

use std::env;
use std::time::Duration;

use async_trait::async_trait;
use leasehold_redlock::core::conformance::{Fixture, Suite};
use leasehold_redlock::{Capabilities, Redlock, RedlockBackend, Result};
use leasehold_testkit::if_deep;

const URLS: &str = "LEASEHOLD_TEST_REDLOCK";

pub(crate) fn suite() -> Suite {
    let urls = env::var(URLS).ok();
    let variants = [("group_commit_off", Nodes { urls: urls.clone(), group_commit: false })];
    Suite::exclusive([("", Nodes { urls, group_commit: true })].into_iter().chain(if_deep(variants)))
}

struct Nodes {
    urls: Option<String>,
    group_commit: bool,
}

#[async_trait]
impl Fixture for Nodes {
    type Backend = RedlockBackend;

    fn capabilities(&self) -> Capabilities {
        Redlock::claims()
    }

    async fn available(&self) -> std::result::Result<(), String> {
        if self.urls.is_none() {
            return Err(format!("set {URLS} to the redis:// URLs of five servers, separated by commas"));
        }
        let locks = self.connect("leasehold-conformance").await.map_err(|error| error.to_string())?;
        Redlock::from(locks).close().await;
        Ok(())
    }

    async fn connect(&self, namespace: &str) -> Result<RedlockBackend> {
        let urls = self.urls.clone().unwrap_or_default();
        let builder = Redlock::builder().url(&urls).namespace(namespace).group_commit(self.group_commit);
        // So that a busy machine is not taken for a silent node.
        builder.node_limit(Duration::from_secs(2)).backend().await
    }

    fn steps_are_atomic(&self) -> bool {
        false
    }
}
