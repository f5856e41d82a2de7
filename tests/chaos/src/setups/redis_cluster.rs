//! `redis-single` on a Cluster.

use leasehold_redis_single::RedisSingle;

use super::exemptions::Exemption;
use super::setup::{Setup, Stays, TTL_MS};
use crate::fault::Fault;
use crate::locks::{Locks, patiently};
use crate::stores;

pub(super) static SETUP: Setup = Setup {
    name: "redis-cluster",
    backend: "redis-single",
    in_words: "`redis-single` on a Cluster of three primaries with a replica each, where nothing confirms replication.",
    start: |folder, _| stores::start_cluster(folder),
    connect: |url| Box::pin(async move { Ok(Locks::exclusive(patiently(|| RedisSingle::connect(url)).await?)) }),
    repair: None,
    ttl_ms: TTL_MS,
    deck: &[&[
        Fault::MoveSlot,
        Fault::ClusterFailOver,
        Fault::StopServer,
        Fault::RestartServer,
        Fault::KillConnections,
        Fault::FlushScripts,
        Fault::ForceRelease,
    ]],
    either: None,
    exempt: &[Exemption::of_lost_writes(Fault::ClusterFailOver)],
    // A Cluster keeps the names of each slot in another list, and all of it twice.
    stays: Stays { entries: 2, more_of_readers: 0, bytes: 2 * 200 },
};
