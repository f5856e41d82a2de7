//! The conformance suite, through an agent: before a store in its memory, and before those of the test servers. Only the model is asked
//! of most: what they are alone their own suites ask.

use std::env;

use async_trait::async_trait;
use leasehold_agent::{AgentBackend, AgentLocks};
use leasehold_core::conformance::{Fixture, Suite};
use leasehold_core::{Capabilities, Capability, Locker, Locks, Memory, Result};
use leasehold_etcd::Etcd;
use leasehold_mysql_rw::MysqlRw;
use leasehold_postgres::Postgres;
use leasehold_redis_rw::RedisRw;
use leasehold_testkit::if_deep;

use crate::agents::client;

pub(crate) fn suite() -> Suite {
    let others = [("postgres", Store::Postgres), ("etcd", Store::Etcd), ("mysql_rw", Store::Mysql)];
    let all = [("", Store::Memory), ("redis_rw", Store::Redis)].into_iter().chain(if_deep(others));
    Suite::shared(all)
}

/// What is behind the agent.
#[derive(Clone, Copy, Debug)]
enum Store {
    Memory,
    Redis,
    Postgres,
    Etcd,
    Mysql,
}

impl Store {
    /// The variable with the URL of the test server.
    fn variable(self) -> Option<&'static str> {
        match self {
            Self::Memory => None,
            Self::Redis => Some("LEASEHOLD_TEST_REDIS"),
            Self::Postgres => Some("LEASEHOLD_TEST_POSTGRES"),
            Self::Etcd => Some("LEASEHOLD_TEST_ETCD"),
            Self::Mysql => Some("LEASEHOLD_TEST_MYSQL"),
        }
    }

    fn url(self) -> String {
        self.variable().and_then(|variable| env::var(variable).ok()).unwrap_or_default()
    }

    fn claims(self) -> Capabilities {
        match self {
            Self::Memory => Memory::new().capabilities(),
            Self::Redis => RedisRw::claims(),
            Self::Postgres => Postgres::claims(),
            Self::Etcd => Etcd::claims(),
            Self::Mysql => MysqlRw::claims(),
        }
    }

    async fn locks(self, namespace: String) -> Result<Locks> {
        let url = self.url();
        Ok(match self {
            Self::Memory => Locks::shared(Memory::new()),
            Self::Redis => Locks::shared(RedisRw::builder().url(url).namespace(namespace).connect().await?),
            Self::Postgres => Locks::shared(Postgres::builder().url(url).namespace(namespace).connect().await?),
            Self::Etcd => Locks::shared(Etcd::builder().url(url).namespace(namespace).connect().await?),
            // One agent serves all tests, and the scripts of the model release what they do not hold. Beside such a release in a batch,
            // MySQL does not always tell what became of one whose row was taken since.
            Self::Mysql => {
                let store = MysqlRw::builder().url(url).namespace(namespace).group_commit(false);
                Locks::shared(store.connect().await?)
            }
        })
    }
}

#[async_trait]
impl Fixture for Store {
    type Backend = AgentBackend;

    fn capabilities(&self) -> Capabilities {
        let behind = self.claims();
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
        let why = |error: leasehold_core::Error| format!("{error:?}");
        match self.variable() {
            Some(variable) if env::var(variable).is_err() => Err(format!("{variable} is not set")),
            _ => match self {
                Self::Postgres => Postgres::migrate(&self.url()).await.map_err(why),
                Self::Mysql => MysqlRw::migrate(&self.url()).await.map_err(why),
                _ => Ok(()),
            },
        }
    }

    async fn connect(&self, namespace: &str) -> Result<AgentBackend> {
        let (store, of_the_store) = (*self, namespace.to_owned());
        client(&format!("{self:?} {namespace}"), move || Box::pin(store.locks(of_the_store))).await
    }
}
