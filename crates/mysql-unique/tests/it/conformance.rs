//! The conformance suite on the server that `LEASEHOLD_TEST_MYSQL` names: the URL of a database in which tables may be
//! created. It runs with the advisory queue and without it, and with group commit and without it.

use async_trait::async_trait;
use leasehold_core::conformance::{Fixture, Suite};
use leasehold_core::{Capabilities, Capability, Result};
use leasehold_mysql_unique::{MysqlUnique, MysqlUniqueBackend};
use leasehold_testkit::if_deep;

const VARIABLE: &str = "LEASEHOLD_TEST_MYSQL";

pub(crate) fn suite() -> Suite {
    let server = Mysql { url: std::env::var(VARIABLE).ok(), advisory_queue: false, group_commit: true };
    let advisory_queue = Mysql { advisory_queue: true, ..server.clone() };
    let group_commit_off = Mysql { group_commit: false, ..server.clone() };
    let variants = [("advisory_queue", advisory_queue), ("group_commit_off", group_commit_off)];
    Suite::exclusive([("", server)].into_iter().chain(if_deep(variants)))
}

#[derive(Clone)]
struct Mysql {
    url: Option<String>,
    advisory_queue: bool,
    group_commit: bool,
}

#[async_trait]
impl Fixture for Mysql {
    type Backend = MysqlUniqueBackend;

    fn capabilities(&self) -> Capabilities {
        let claims = MysqlUnique::claims();
        if self.advisory_queue { claims.with(Capability::Wakeup) } else { claims }
    }

    async fn available(&self) -> std::result::Result<(), String> {
        let url = self.url.as_ref().ok_or_else(|| format!("{VARIABLE} is not set"))?;
        MysqlUnique::migrate(url).await.map_err(|error| format!("{error:?}"))
    }

    async fn connect(&self, namespace: &str) -> Result<MysqlUniqueBackend> {
        let url = self.url.clone().unwrap_or_default();
        let builder = MysqlUnique::builder().url(url).namespace(namespace).group_commit(self.group_commit);
        builder.advisory_queue(self.advisory_queue).backend().await
    }

    fn signals_in_turn(&self) -> bool {
        self.advisory_queue
    }
}
