//! `redis-single` on servers of which Sentinels choose the primary.

use leasehold_redis_single::RedisSingle;

use super::exemptions::{Exemption, FAIL_OVER};
use super::setup::{Setup, Stays, TTL_MS};
use crate::fault::Fault;
use crate::locks::{Locks, patiently};
use crate::stores;

pub(super) static SETUP: Setup = Setup {
    name: "redis-sentinel",
    backend: "redis-single",
    in_words: "`redis-single` on a primary and two replicas under three Sentinels, where nothing confirms replication.",
    start: |folder, _| stores::start_sentinel_set(folder, &[]),
    connect: |url| Box::pin(async move { Ok(Locks::exclusive(patiently(|| RedisSingle::connect(url)).await?)) }),
    repair: None,
    ttl_ms: TTL_MS,
    deck: &[&[Fault::FailOver, Fault::StopServer, Fault::RestartServer, Fault::KillConnections]],
    either: None,
    exempt: &[
        Exemption::from_exclusion(Fault::FailOver, FAIL_OVER),
        Exemption::from_exclusion(Fault::StopServer, FAIL_OVER),
        Exemption::from_exclusion(Fault::RestartServer, FAIL_OVER),
    ],
    stays: Stays { entries: 3, more_of_readers: 0, bytes: 3 * 200 },
};
