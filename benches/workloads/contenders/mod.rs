//! Everything that the workloads let lock, by a name that also a child process understands.

mod etcd;
mod files;
pub(crate) mod mysql;
pub(crate) mod ours;
mod postgres;
pub(crate) mod redis;

use std::path::Path;

use leasehold_agent::AgentLocks;
use leasehold_core::{Engine, EngineOptions, LocalHandoff, Locker};
use leasehold_etcd::Etcd;
use leasehold_file::FileLocks;
use leasehold_mysql_rw::MysqlRw;
use leasehold_mysql_unique::MysqlUnique;
use leasehold_postgres::Postgres;
use leasehold_redis_reentrant::RedisReentrant;
use leasehold_redis_rw::RedisRw;
use leasehold_redis_single::RedisSingle;
use leasehold_redlock::Redlock;
use serde::{Deserialize, Serialize};

use self::ours::{Ours, Readers, ours};
use crate::load::{Load, Result};
use crate::log::Log;

/// The part that a side has in the comparison: our lock, bare round trips, or another lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    Ours,
    Floor,
    Peer,
}

/// A contender and where its store is: the URLs of servers, a folder or a socket.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Locks {
    pub(crate) kind: Kind,
    pub(crate) urls: Vec<String>,
}

macro_rules! contenders {
    ($urls:ident, $url:ident; $($(#[$doc:meta])* $kind:ident: $role:ident $name:literal => $contender:expr;)*) => {
        /// A contender.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
        pub(crate) enum Kind {
            $($(#[$doc])* $kind,)*
        }

        impl Kind {
            /// Its part, and its name in rows and plots.
            pub(crate) const fn side(self) -> (Role, &'static str) {
                match self {
                    $(Self::$kind => (Role::$role, $name),)*
                }
            }
        }

        impl Locks {
            /// Connects and runs the load. `start` is asked for when it could begin.
            pub(crate) async fn run(&self, load: &Load, start: impl FnOnce() -> Result<u64>) -> Result<Log> {
                let $urls = &self.urls;
                let $url = $urls.first().ok_or("no store")?;
                match self.kind {
                    $(Kind::$kind => load.run($contender, start()?).await,)*
                }
            }
        }
    };
}

contenders! { urls, url;
    RedisSingle: Ours "redis-single" => redis_single(url, true).await?;
    RedisSingleNoHandoff: Ours "redis-single, local hand-off off" => redis_single(url, false).await?;
    /// What others are compared with.
    BesideRedisSingle: Peer "redis-single" => redis_single(url, true).await?;
    /// What those who drop guards are compared with.
    RedisReleased: Floor "released" => redis_single(url, true).await?;
    /// The guards are dropped instead of released.
    RedisDropped: Ours "dropped" => redis_single(url, true).await?.dropping();
    RedisCluster: Ours "redis-single, Cluster" => redis_single(url, true).await?;
    /// One session for all tasks.
    RedisReentrant: Ours "redis-reentrant" => ours(RedisReentrant::connect(url).await?.session());
    RedisWriters: Ours "redis-rw, writers" => ours(RedisRw::connect(url).await?);
    RedisReaders: Ours "redis-rw, readers" => Readers(ours(RedisRw::connect(url).await?));
    RedlockUnfenced: Ours "redlock, unfenced" => redlock(urls, false).await?;
    Redlock: Ours "redlock, fenced" => redlock(urls, true).await?;
    File: Ours "file" => ours(FileLocks::open(Path::new(url))?);
    /// The backend `agent:`.
    Agent: Ours "agent:" => ours(AgentLocks::builder().path(url).connect().await?);
    /// The lines of an agent, with a connection for each lock.
    AgentLines: Ours "lines" => files::AgentLines(url.into());
    /// What an agent is compared with.
    RedisDirect: Peer "direct" => redis_single(url, true).await?;
    FileDirect: Peer "direct" => ours(FileLocks::open(Path::new(url))?);
    MysqlUnique: Ours "mysql-unique" => mysql_unique(url, true, false).await?;
    MysqlQueue: Ours "mysql-unique, advisory queue" => mysql_unique(url, true, true).await?;
    MysqlQueueNoHandoff: Ours "mysql-unique, advisory queue, local hand-off off" =>
        mysql_unique(url, false, true).await?;
    MysqlRw: Ours "mysql-rw, writers" => ours(MysqlRw::connect(url).await?);
    Postgres: Ours "postgres" => ours(Postgres::connect(url).await?);
    Etcd: Ours "etcd" => ours(Etcd::connect(url).await?);
    /// `PING` is a cycle.
    Ping: Floor "PING" => redis::Ping(redis::connect(url).await?);
    /// `SET NX PX`, then compare and delete, on a bare fred client.
    Bare: Floor "bare fred" => redis::Bare::connect(url).await?;
    /// `Bare` behind a queue inside the process.
    BareQueued: Floor "bare fred behind a queue" => redis::Bare::queued(url).await?;
    /// `Bare` to all, done when a majority has answered.
    BareFanOut: Floor "bare fan-out" => redis::FanOut::connect(urls).await?;
    /// `flock(2)`, write, unlock, by system calls.
    RawFile: Floor "flock(2) + write" => files::RawFile::new(Path::new(url))?;
    /// `SELECT 1` of MySQL is a cycle.
    Select: Floor "SELECT 1" => mysql::Select(mysql::pool(url)?);
    /// Two bare updates of a row of MySQL.
    Updates: Floor "two UPDATEs" => mysql::Updates::connect(url).await?;
    /// Two bare updates of a row of PostgreSQL.
    PgUpdates: Floor "two UPDATEs" => postgres::Updates::connect(url).await?;
    /// A bare put, and a bare delete, in etcd.
    EtcdPuts: Floor "put and delete" => etcd::Puts(etcd::connect(url).await?);
    /// The peer in Rust, which retries after a random pause of up to 200 ms.
    Rslock: Peer "rslock" => redis::Rslock::connect(urls, 200).await?;
    /// The same, with up to 5 ms.
    RslockEager: Peer "rslock, retry 5 ms" => redis::Rslock::connect(urls, 5).await?;
    /// The lock of the blogs on MySQL.
    InsertDelete: Peer "insert/delete" => mysql::InsertDelete::connect(url).await?;
    /// PostgreSQL's own locks of sessions.
    PgAdvisory: Peer "pg_advisory_lock" => postgres::Advisory::new(url);
    /// The lock that etcd itself serves.
    EtcdLock: Peer "etcd's Lock service" => etcd::Served::connect(url).await?;
    /// A process `etcdctl lock` for each lock.
    Etcdctl: Peer "etcdctl lock" => etcd::Processes(url.replacen("etcd://", "", 1));
}

impl Kind {
    /// The commands that its client sends to Redis, where they can be told from those of its scripts.
    pub(crate) fn sends(self) -> &'static [&'static str] {
        match self {
            Self::RedisSingle | Self::RedisSingleNoHandoff => &["evalsha", "eval", "fcall", "wait"],
            // Its scripts only read and delete.
            Self::Rslock | Self::RslockEager => &["set", "evalsha", "eval"],
            _ => &[],
        }
    }
}

fn local_handoff(is_on: bool) -> EngineOptions {
    EngineOptions::new().local_handoff(if is_on { LocalHandoff::new() } else { LocalHandoff::off() })
}

async fn redis_single(url: &str, handoff: bool) -> Result<Ours<impl Locker + use<>>> {
    Ok(ours(Engine::with(RedisSingle::builder().url(url).backend().await?, local_handoff(handoff))))
}

async fn mysql_unique(url: &str, handoff: bool, queue: bool) -> Result<Ours<impl Locker + use<>>> {
    let backend = MysqlUnique::builder().url(url).advisory_queue(queue).backend().await?;
    Ok(ours(Engine::with(backend, local_handoff(handoff))))
}

async fn redlock(urls: &[String], fencing: bool) -> Result<Ours<Redlock>> {
    // Programs that share keys must agree on fencing, so each kind has keys of its own.
    let namespace = if fencing { "fenced" } else { "unfenced" };
    Ok(ours(Redlock::builder().nodes(urls).fencing(fencing).namespace(namespace).connect().await?))
}
