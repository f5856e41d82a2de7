//! `redis-single` on a Cluster.

use leasehold_redis_single::RedisSingle;

use super::setup::{Setup, Stays};
use crate::fault::Fault;
use crate::locks::{Locks, patiently};
use crate::stores;

pub(super) static SETUP: Setup = Setup {
    name: "redis-cluster",
    backend: "redis-single",
    in_words: "`redis-single` on a Cluster of three nodes.",
    start: |folder, _| stores::start_cluster(folder),
    connect: |url| Box::pin(async move { Ok(Locks::exclusive(patiently(|| RedisSingle::connect(url)).await?)) }),
    repair: None,
    deck: &[&[
        Fault::MoveSlot,
        Fault::StopServer,
        Fault::RestartServer,
        Fault::KillConnections,
        Fault::FlushScripts,
        Fault::ForceRelease,
    ]],
    either: None,
    exempt: &[],
    // A Cluster keeps the names of each slot in another list.
    stays: Stays { entries: 1, more_of_readers: 0, bytes: 200 },
};
