//! The conformance suite. `LEASEHOLD_TEST_MYSQL` has the URL of a database in which tables may be created.

use std::process::ExitCode;

use async_trait::async_trait;
use leasehold_core::conformance::{self, Fixture};
use leasehold_core::{Capabilities, Result};
use leasehold_mysql_rw::{MysqlRw, MysqlRwBackend};

const VARIABLE: &str = "LEASEHOLD_TEST_MYSQL";

struct Mysql(Option<String>);

#[async_trait]
impl Fixture for Mysql {
    type Backend = MysqlRwBackend;

    fn capabilities(&self) -> Capabilities {
        MysqlRw::claims()
    }

    async fn available(&self) -> std::result::Result<(), String> {
        let url = self.0.as_ref().ok_or_else(|| format!("{VARIABLE} is not set"))?;
        MysqlRw::migrate(url).await.map_err(|error| format!("{error:?}"))
    }

    async fn connect(&self, namespace: &str) -> Result<MysqlRwBackend> {
        let url = self.0.clone().unwrap_or_default();
        MysqlRw::builder().url(url).namespace(namespace).backend().await
    }
}

fn main() -> ExitCode {
    conformance::shared(Mysql(std::env::var(VARIABLE).ok()))
}
