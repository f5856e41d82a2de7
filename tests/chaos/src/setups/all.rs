//! All setups: start, faults, exemptions, what stays behind.

use std::time::Duration;

use leasehold_agent::KIND as AGENT;
use leasehold_chaos::checker::Allowance;
use leasehold_core::{Kind, Locker, Locks, Memory};
use leasehold_etcd::KIND as ETCD;
use leasehold_file::KIND as FILE;
use leasehold_mysql_rw::KIND as MYSQL_RW;
use leasehold_mysql_unique::KIND as MYSQL_UNIQUE;
use leasehold_postgres::KIND as POSTGRES;
use leasehold_redis_reentrant::KIND as REDIS_REENTRANT;
use leasehold_redis_rw::KIND as REDIS_RW;
use leasehold_redis_single::{KIND as REDIS_SINGLE, RedisSingle};
use leasehold_redlock::KIND as REDLOCK;

use super::setup::{Setup, Stays, lost_writes, no_exclusion, until_noticed};
use crate::fault::{Fault, ON_THE_WAY};
use crate::stores;

/// All of them, in the order of documents and reports.
pub(crate) static ALL: [Setup; 17] = [
    Setup {
        in_words: "A directory that several processes use.",
        start: |library, _| stores::start_file(library),
        deck: &[&[Fault::ForceRelease, Fault::RemoveLockFile, Fault::DiskFull]],
        exempt: &[until_noticed(Fault::RemoveLockFile, "the holder learns of it at its next check")],
        // The lock file; the folder of the readers, and the second copy of the counter.
        stays: Stays { entries: 1, more_of_readers: 2, bytes: 0 },
        ..Setup::of(FILE)
    },
    Setup { in_words: "One Redis with `appendfsync always`.", ..one_redis(REDIS_SINGLE) },
    Setup {
        in_words: "`redis-single` on a primary and two replicas under three Sentinels, where nothing confirms replication.",
        ..sentinel_set("redis-sentinel", REDIS_SINGLE)
    },
    Setup {
        in_words: "`redis-single` on a primary and two replicas under three Sentinels, where both replicas confirm each grant \
                   (`confirm_replicas`).",
        start: |library, _| stores::start_sentinel_set(library, true),
        // All replicas that there are: the one that is promoted is among them.
        connect: |target| {
            let builder = RedisSingle::builder().url(target.url).confirm_replicas(2, Duration::from_millis(300));
            Box::pin(async { builder.connect().await.map(Locks::exclusive) })
        },
        exempt: &[],
        ..sentinel_set("redis-confirmed", REDIS_SINGLE)
    },
    Setup {
        in_words: "`redis-single` on a Cluster of three primaries with a replica each, where nothing confirms replication.",
        ..cluster("redis-cluster", REDIS_SINGLE)
    },
    Setup { in_words: "Sessions on one Redis with `appendfsync always`.", ..one_redis(REDIS_REENTRANT) },
    Setup { in_words: "One Redis with `appendfsync always`; readers and writers.", ..one_redis(REDIS_RW) },
    Setup {
        in_words: "`redis-rw` on a primary and two replicas under three Sentinels, where nothing confirms replication.",
        ..sentinel_set("redis-rw-sentinel", REDIS_RW)
    },
    Setup {
        in_words: "`redis-rw` on a Cluster of three primaries with a replica each, where nothing confirms replication.",
        ..cluster("redis-rw-cluster", REDIS_RW)
    },
    Setup {
        in_words: "Three Redis servers with `appendfsync always`. One is hit at a time, or two, which is a majority.",
        start: |library, _| stores::start_redis(library, 3, "redlock:"),
        deck: &[ON_THE_WAY, TO_A_SERVER, TO_REDIS, &[Fault::StopTwoServers]],
        exempt: &[no_exclusion(
            Fault::ServerClockAhead,
            "where the lock is on no more nodes than a majority, or more clocks jump: leases end early there",
        )],
        stays: on_servers(3),
        ..Setup::of(REDLOCK)
    },
    Setup {
        name: "redlock-five",
        in_words: "Five Redis servers with `appendfsync always`; two are stopped at a time, which is a minority.",
        start: |library, _| stores::start_redis(library, 5, "redlock:"),
        deck: &[&[Fault::StopTwoServers, Fault::StopServer, Fault::RestartServer, Fault::KillConnections]],
        stays: on_servers(5),
        ..Setup::of(REDLOCK)
    },
    Setup { in_words: "One MariaDB.", start: stores::start_mariadb, ..database(MYSQL_UNIQUE) },
    Setup {
        name: "mysql-pair",
        in_words: "`mysql-unique` on a MariaDB and its replica, at an address that an operator moves.",
        start: stores::start_mariadb_pair,
        deck: &[&[Fault::SwitchOver, Fault::StopServer, Fault::KillConnections, Fault::ForceRelease]],
        stays: on_servers(2),
        ..Setup::of(MYSQL_UNIQUE)
    },
    Setup { in_words: "One MariaDB; readers and writers.", start: stores::start_mariadb, ..database(MYSQL_RW) },
    Setup {
        in_words: "One PostgreSQL; readers and writers.",
        start: stores::start_postgres,
        stays: Stays { entries: 1, more_of_readers: 0, bytes: 600 },
        ..database(POSTGRES)
    },
    Setup {
        in_words: "Three members of etcd; readers and writers. The way to one member is broken, or to all of them.",
        start: |library, _| stores::start_etcd(library),
        // The shortest lease.
        ttl: Duration::from_secs(2),
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
        exempt: &[
            // Each of them may be the leader.
            no_exclusion(Fault::StopLeader, STALE_LEADER),
            no_exclusion(Fault::StopServer, STALE_LEADER),
            no_exclusion(Fault::StopTwoServers, STALE_LEADER),
        ],
        stays: Stays { entries: 0, more_of_readers: 0, bytes: 3 * 1000 },
        ..Setup::of(ETCD)
    },
    Setup {
        in_words: "Two agents, as on two hosts, before one Redis with `appendfsync always`; readers and writers.",
        start: |library, _| stores::start_agents(library),
        // The runner and its operator need no agent.
        connect: |target| {
            let kind = if target.url.starts_with("agent:") { AGENT } else { REDIS_RW };
            (kind.connect)(target)
        },
        deck: &[ON_THE_WAY, TO_A_SERVER, TO_REDIS, &[Fault::StopAgent, Fault::RestartAgent]],
        ..one_redis(AGENT)
    },
];

/// No lock at all: shows that the checker notices.
static ALWAYS_GRANTS: Setup = Setup::of(Kind::new(
    "always-grants",
    &["always-grants"],
    || Memory::new().capabilities(),
    |_| Box::pin(async { Ok(Locks::exclusive(Memory::new())) }),
));

/// The setup of this name; also the one that shows that a broken lock is found out.
pub(crate) fn named(name: &str) -> Result<&'static Setup, String> {
    let known = || ALL.iter().map(|setup| setup.name).collect::<Vec<_>>().join(", ");
    let found = ALL.iter().chain([&ALWAYS_GRANTS]).find(|setup| setup.name == name);
    found.ok_or_else(|| format!("no backend is named {name}; there are: {}", known()))
}

const fn one_redis(kind: Kind) -> Setup {
    Setup {
        start: |library, _| stores::start_redis(library, 1, ""),
        deck: &[ON_THE_WAY, TO_A_SERVER, TO_REDIS],
        // What a server forgot cannot protect tokens from its clock.
        either: Some([Fault::EmptyServer, Fault::ServerClockBack]),
        exempt: OF_ONE_REDIS,
        ..Setup::of(kind)
    }
}

/// Servers of which Sentinels choose the primary.
const fn sentinel_set(name: &'static str, kind: Kind) -> Setup {
    Setup {
        name,
        start: |library, _| stores::start_sentinel_set(library, false),
        // Another primary takes over before a lease of the old one ends.
        ttl: Duration::from_secs(4),
        deck: &[&[Fault::FailOver, Fault::FallBehind, Fault::StopServer, Fault::RestartServer, Fault::KillConnections]],
        exempt: OF_A_SENTINEL_SET,
        stays: on_servers(3),
        ..Setup::of(kind)
    }
}

const fn cluster(name: &'static str, kind: Kind) -> Setup {
    Setup {
        name,
        start: |library, _| stores::start_cluster(library),
        deck: &[&[
            Fault::MoveSlot,
            Fault::ClusterFailOver,
            Fault::StopServer,
            Fault::RestartServer,
            Fault::KillConnections,
            Fault::FlushScripts,
            Fault::ForceRelease,
        ]],
        exempt: OF_A_CLUSTER,
        // A Cluster keeps the names of each slot in another list, and all of it twice.
        stays: on_servers(2),
        ..Setup::of(kind)
    }
}

const fn database(kind: Kind) -> Setup {
    Setup {
        deck: &[ON_THE_WAY, TO_A_SERVER, &[Fault::LockedTable, Fault::ReadOnly, Fault::DiskFull]],
        exempt: OF_A_DATABASE,
        ..Setup::of(kind)
    }
}

const fn on_servers(count: u64) -> Stays {
    Stays { entries: count, more_of_readers: 0, bytes: count * 200 }
}

/// What is done to every server that stands alone.
const TO_A_SERVER: &[Fault] = &[
    Fault::StopServer,
    Fault::RestartServer,
    Fault::KillConnections,
    Fault::NoConnectionsLeft,
    Fault::ForceRelease,
    Fault::ServerClockAhead,
    Fault::ServerClockBack,
    Fault::SlowDisk,
];

const TO_REDIS: &[Fault] = &[Fault::FlushScripts, Fault::MemoryFull, Fault::EmptyServer, Fault::DiskFull];

/// What leases that one server ends do not promise.
const OF_A_DATABASE: &[Allowance] = &[no_exclusion(Fault::ServerClockAhead, "leases end early by as much")];
const OF_ONE_REDIS: &[Allowance] =
    &[until_noticed(Fault::EmptyServer, "holders learn of it at their next renewal"), OF_A_DATABASE[0]];

/// What is not promised where no replica confirms.
const OF_A_SENTINEL_SET: &[Allowance] = &[
    lost_writes(Fault::FailOver),
    lost_writes(Fault::FallBehind),
    lost_writes(Fault::StopServer),
    lost_writes(Fault::RestartServer),
];
const OF_A_CLUSTER: &[Allowance] = &[lost_writes(Fault::ClusterFailOver)];

/// The tests run on 3.4.23.
const STALE_LEADER: &str = "in releases before March 2024, a leader that stood still ends leases when it goes on, which the next \
                            leader keeps alive (etcd-io/etcd#15247)";
