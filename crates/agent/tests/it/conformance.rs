//! The conformance suite, through an agent: before a store in its memory, and before those of the test servers. Only the model is asked
//! of most: what they are alone their own suites ask.

use std::env;

use async_trait::async_trait;
use leasehold_agent::{AgentBackend, AgentLocks};
use leasehold_core::conformance::{Fixture, Suite};
use leasehold_core::{Capabilities, Capability, Kind, Locker, Locks, Memory, Result, Target};
use leasehold_testkit::if_deep;

use crate::agents::client;

pub(crate) fn suite() -> Suite {
    let server = |kind: Kind, variable, options| Store { kind, variable: Some(variable), options };
    let others = [
        ("postgres", server(leasehold_postgres::KIND, "LEASEHOLD_TEST_POSTGRES", "")),
        ("etcd", server(leasehold_etcd::KIND, "LEASEHOLD_TEST_ETCD", "")),
        // One agent serves all tests, and the scripts of the model release what they do not hold. Beside such a release in a batch,
        // MySQL does not always tell what became of one whose row was taken since.
        ("mysql_rw", server(leasehold_mysql_rw::KIND, "LEASEHOLD_TEST_MYSQL", "&group_commit=false")),
    ];
    let redis = server(leasehold_redis_rw::KIND, "LEASEHOLD_TEST_REDIS", "");
    let memory = Store { kind: MEMORY, variable: None, options: "" };
    Suite::shared([("", memory), ("redis_rw", redis)].into_iter().chain(if_deep(others)))
}

const MEMORY: Kind = Kind::new(
    "memory",
    &["memory"],
    || Memory::new().capabilities(),
    |_target| Box::pin(async { Ok(Locks::shared(Memory::new())) }),
);

/// What is behind the agent.
struct Store {
    kind: Kind,
    /// The variable with the URL of the test server.
    variable: Option<&'static str>,
    /// What is behind the namespace in the URL.
    options: &'static str,
}

#[async_trait]
impl Fixture for Store {
    type Backend = AgentBackend;

    fn capabilities(&self) -> Capabilities {
        let behind = (self.kind.capabilities)();
        let missing = Capability::ALL.iter().filter(|capability| {
            !behind.has(**capability) && ![Capability::CrossProcess, Capability::LocalHandoff].contains(capability)
        });
        missing
            .fold(AgentLocks::claims(), |claims, capability| match claims.why_not(*capability) {
                None => claims.without(*capability, "the store behind the agent does not promise it"),
                Some(_) => claims,
            })
            .with_shortest_ttl(behind.shortest_ttl())
            .with_lease_granularity(behind.lease_granularity())
    }

    async fn available(&self) -> std::result::Result<(), String> {
        let Some(variable) = self.variable else { return Ok(()) };
        let url = env::var(variable).map_err(|_| format!("{variable} is not set"))?;
        let Some(tables) = self.kind.tables else { return Ok(()) };
        (tables.migrate)(&url).await.map_err(|error| format!("{error:?}"))
    }

    async fn connect(&self, namespace: &str) -> Result<AgentBackend> {
        let kind = self.kind;
        let server = self.variable.and_then(|variable| env::var(variable).ok()).unwrap_or_default();
        let encoded = namespace.bytes().fold(String::new(), |encoded, byte| encoded + &format!("%{byte:02X}"));
        let joint = if server.contains('?') { '&' } else { '?' };
        let url = format!("{server}{joint}namespace={encoded}{}", self.options);
        let name = format!("{} {namespace}", kind.name);
        client(&name, move || Box::pin(async move { (kind.connect)(Target::new(&url)).await })).await
    }
}
