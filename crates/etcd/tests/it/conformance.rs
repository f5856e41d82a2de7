//! The conformance suite on the server that `LEASEHOLD_TEST_ETCD` names, and on the cluster that `LEASEHOLD_TEST_ETCD_CLUSTER` names.

use async_trait::async_trait;
use leasehold_core::conformance::{Fixture, Suite};
use leasehold_core::{Capabilities, Result};
use leasehold_etcd::{Etcd, EtcdBackend};
use leasehold_testkit::if_deep;

pub(crate) fn suite() -> Suite {
    let server = |variable| Server { variable, url: std::env::var(variable).ok(), group_commit: true };
    let one = server("LEASEHOLD_TEST_ETCD");
    let others = [
        ("three_members", server("LEASEHOLD_TEST_ETCD_CLUSTER")),
        ("group_commit_off", Server { group_commit: false, ..one.clone() }),
    ];
    Suite::shared([("", one)].into_iter().chain(if_deep(others)))
}

#[derive(Clone)]
struct Server {
    variable: &'static str,
    url: Option<String>,
    group_commit: bool,
}

#[async_trait]
impl Fixture for Server {
    type Backend = EtcdBackend;

    fn capabilities(&self) -> Capabilities {
        Etcd::claims()
    }

    async fn available(&self) -> std::result::Result<(), String> {
        let url = self.url.as_ref().ok_or_else(|| format!("{} is not set", self.variable))?;
        Etcd::connect(url).await.map(drop).map_err(|error| format!("{error:?}"))
    }

    async fn connect(&self, namespace: &str) -> Result<EtcdBackend> {
        let url = self.url.clone().unwrap_or_default();
        Etcd::builder().url(url).namespace(namespace).group_commit(self.group_commit).backend().await
    }
}
