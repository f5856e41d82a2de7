//! `agent` before `redis-rw` on one server.

use leasehold_agent::AgentLocks;
use leasehold_redis_rw::RedisRw;

use super::decks::{ON_THE_WAY, TO_A_SERVER, TO_REDIS};
use super::exemptions::OF_ONE_REDIS;
use super::setup::{Setup, Stays, TTL_MS};
use crate::fault::Fault;
use crate::locks::{Locks, patiently};
use crate::stores;

pub(super) static SETUP: Setup = Setup {
    name: "agent",
    backend: "agent",
    in_words: "Two agents, as on two hosts, before one Redis with `appendfsync always`; readers and writers.",
    start: |folder, library| stores::start_agents(folder, library),
    // The runner and its operator need no agent.
    connect: |url| {
        Box::pin(async move {
            if url.starts_with("agent:") {
                return Ok(Locks::shared(patiently(|| AgentLocks::connect(url)).await?));
            }
            Ok(Locks::shared(patiently(|| RedisRw::connect(url)).await?))
        })
    },
    repair: None,
    ttl_ms: TTL_MS,
    deck: &[ON_THE_WAY, TO_A_SERVER, TO_REDIS, &[Fault::StopAgent, Fault::RestartAgent]],
    // What a server forgot cannot protect tokens from its clock.
    either: Some([Fault::EmptyServer, Fault::ServerClockBack]),
    exempt: OF_ONE_REDIS,
    stays: Stays { entries: 1, more_of_readers: 0, bytes: 200 },
};
