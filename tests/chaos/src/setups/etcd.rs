//! `etcd` on three members.

use leasehold_etcd::Etcd;

use super::decks::ON_THE_WAY;
use super::setup::{Setup, Stays};
use crate::fault::Fault;
use crate::locks::{Locks, patiently};
use crate::stores;

pub(super) static SETUP: Setup = Setup {
    name: "etcd",
    backend: "etcd",
    in_words: "Three members of etcd; readers and writers. The way to one member is broken, or to all of them.",
    start: stores::start_etcd,
    connect: |url| Box::pin(async move { Ok(Locks::shared(patiently(|| Etcd::connect(url)).await?)) }),
    repair: None,
    // The shortest lease.
    ttl_ms: 2000,
    deck: &[
        ON_THE_WAY,
        &[
            Fault::StopServer,
            Fault::StopTwoServers,
            Fault::StopLeader,
            Fault::RestartServer,
            Fault::RestartLeader,
            Fault::RestartAllServers,
            Fault::ReplaceServer,
            Fault::MoveLeader,
            Fault::PartLeader,
            Fault::SlowDisk,
            Fault::DiskFull,
            Fault::Compact,
            Fault::SpaceUsedUp,
            Fault::ForceRelease,
        ],
    ],
    either: None,
    exempt: &[],
    stays: Stays { entries: 0, more_of_readers: 0, bytes: 3 * 1000 },
};
