//! `etcd` on three members.

use leasehold_etcd::Etcd;

use super::decks::ON_THE_WAY;
use super::exemptions::Exemption;
use super::setup::{Setup, Stays};
use crate::fault::Fault;
use crate::locks::{Locks, patiently};
use crate::stores;

/// The tests run on 3.4.23.
const STALE_LEADER: &str = "in releases before March 2024, a leader that stood still ends leases when it goes on, which the next \
                            leader keeps alive (etcd-io/etcd#15247)";

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
    exempt: &[
        // Each of them may be the leader.
        Exemption::from_exclusion(Fault::StopLeader, STALE_LEADER),
        Exemption::from_exclusion(Fault::StopServer, STALE_LEADER),
        Exemption::from_exclusion(Fault::StopTwoServers, STALE_LEADER),
    ],
    stays: Stays { entries: 0, more_of_readers: 0, bytes: 3 * 1000 },
};
