//! The conformance suite, with group commit and without it. `LEASEHOLD_TEST_MYSQL` has the URL of a database in which tables may be created.

use async_trait::async_trait;
use leasehold_core::conformance::{Fixture, Suite};
use leasehold_core::{Capabilities, Result};
use leasehold_mysql_rw::{MysqlRw, MysqlRwBackend};
use leasehold_testkit::if_deep;

const VARIABLE: &str = "LEASEHOLD_TEST_MYSQL";

#[derive(Clone)]
struct Mysql {
    url: Option<String>,
    group_commit: bool,
}

#[async_trait]
impl Fixture for Mysql {
    type Backend = MysqlRwBackend;

    fn capabilities(&self) -> Capabilities {
        MysqlRw::claims()
    }

    async fn available(&self) -> std::result::Result<(), String> {
        let url = self.url.as_ref().ok_or_else(|| format!("{VARIABLE} is not set"))?;
        MysqlRw::migrate(url).await.map_err(|error| format!("{error:?}"))
    }

    async fn connect(&self, namespace: &str) -> Result<MysqlRwBackend> {
        let url = self.url.clone().unwrap_or_default();
        MysqlRw::builder().url(url).namespace(namespace).group_commit(self.group_commit).backend().await
    }

    fn steps_are_atomic(&self) -> bool {
        false
    }
}

pub(crate) fn suite() -> Suite {
    let server = Mysql { url: std::env::var(VARIABLE).ok(), group_commit: true };
    let variants = [("group_commit_off", Mysql { group_commit: false, ..server.clone() })];
    Suite::shared([("", server)].into_iter().chain(if_deep(variants)))
}
