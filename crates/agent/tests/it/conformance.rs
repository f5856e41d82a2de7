//! The conformance suite, through an agent: before a store in its memory, and before the Redis that `LEASEHOLD_TEST_REDIS` names.

use std::env;

use async_trait::async_trait;
use leasehold_agent::{AgentBackend, AgentLocks};
use leasehold_core::conformance::{Fixture, Suite};
use leasehold_core::{Capabilities, Capability, Locker, Locks, Memory, Result};
use leasehold_redis_rw::RedisRw;

use crate::agents::client;

const REDIS: &str = "LEASEHOLD_TEST_REDIS";

pub(crate) fn suite() -> Suite {
    Suite::shared([("", Behind::Memory), ("redis_rw", Behind::Redis(env::var(REDIS).ok()))])
}

#[derive(Clone)]
enum Behind {
    Memory,
    Redis(Option<String>),
}

#[async_trait]
impl Fixture for Behind {
    type Backend = AgentBackend;

    fn capabilities(&self) -> Capabilities {
        let behind = match self {
            Self::Memory => Memory::new().capabilities(),
            Self::Redis(_) => RedisRw::claims(),
        };
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
        match self {
            Self::Redis(None) => Err(format!("set {REDIS} to the URL of a Redis")),
            _ => Ok(()),
        }
    }

    async fn connect(&self, namespace: &str) -> Result<AgentBackend> {
        match self.clone() {
            Self::Memory => {
                client(&format!("memory {namespace}"), || Box::pin(async { Ok(Locks::shared(Memory::new())) })).await
            }
            Self::Redis(url) => {
                let (url, of_the_store) = (url.unwrap_or_default(), namespace.to_owned());
                let store = || {
                    Box::pin(async move {
                        RedisRw::builder().url(url).namespace(of_the_store).connect().await.map(Locks::shared)
                    }) as _
                };
                client(&format!("redis {namespace}"), store).await
            }
        }
    }
}
