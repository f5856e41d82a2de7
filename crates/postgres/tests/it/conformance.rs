//! The conformance suite on the server that `LEASEHOLD_TEST_POSTGRES` names: the URL of a database in which a schema may be
//! created. It runs with group commit and without it, and with notifications and without them.

use async_trait::async_trait;
use leasehold_core::conformance::{Fixture, Suite};
use leasehold_core::{Capabilities, Capability, Result};
use leasehold_postgres::{Postgres, PostgresBackend};
use leasehold_testkit::if_deep;

const VARIABLE: &str = "LEASEHOLD_TEST_POSTGRES";

pub(crate) fn suite() -> Suite {
    let server = Server { url: std::env::var(VARIABLE).ok(), group_commit: true, listen: true };
    let variants = [
        ("group_commit_off", Server { group_commit: false, ..server.clone() }),
        ("listen_off", Server { listen: false, ..server.clone() }),
    ];
    Suite::shared([("", server)].into_iter().chain(if_deep(variants)))
}

#[derive(Clone)]
struct Server {
    url: Option<String>,
    group_commit: bool,
    listen: bool,
}

#[async_trait]
impl Fixture for Server {
    type Backend = PostgresBackend;

    fn capabilities(&self) -> Capabilities {
        let claims = Postgres::claims();
        if self.listen { claims } else { claims.without(Capability::Wakeup, "listen=false: waiters poll") }
    }

    async fn available(&self) -> std::result::Result<(), String> {
        let url = self.url.as_ref().ok_or_else(|| format!("{VARIABLE} is not set"))?;
        Postgres::migrate(url).await.map_err(|error| format!("{error:?}"))
    }

    async fn connect(&self, namespace: &str) -> Result<PostgresBackend> {
        let url = format!("{}?listen={}", self.url.clone().unwrap_or_default(), self.listen);
        Postgres::builder().url(url).namespace(namespace).group_commit(self.group_commit).backend().await
    }
}
