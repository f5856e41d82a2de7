//! Everything that the workloads let lock, by a name that also a child process understands.

mod agent;
pub(crate) mod bare;
mod etcd;
pub(crate) mod mysql;
pub(crate) mod ours;
mod postgres;
mod raw_file;
mod rslock;

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::load::{Load, Result};
use crate::log::Log;

/// A contender and where its store is.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Locks {
    /// `leasehold-redis-single`, with the hand-off inside the process on or off.
    RedisSingle { url: String, local_handoff: bool },
    /// `leasehold-redis-single`, whose guards are dropped instead of released.
    RedisDropped { url: String },
    /// `leasehold-redis-reentrant`, with one session for all tasks.
    RedisReentrant { url: String },
    /// `leasehold-redis-rw`, of which only the writers take part, or only the readers.
    RedisRw { url: String, readers: bool },
    /// `leasehold-redlock`, with or without fencing.
    Redlock { urls: Vec<String>, fencing: bool },
    /// `leasehold-file`.
    File { folder: PathBuf },
    /// The backend `agent:`, at the socket of an agent.
    Agent { socket: PathBuf },
    /// The lines of an agent, with a connection for each lock.
    AgentLines { socket: PathBuf },
    /// `leasehold-mysql-unique`, with the hand-off inside the process and the advisory queue on or off.
    MysqlUnique { url: String, local_handoff: bool, advisory_queue: bool },
    /// `leasehold-mysql-rw`, of which only the writers take part.
    MysqlRw { url: String },
    /// `leasehold-postgres`.
    Postgres { url: String },
    /// A floor: two bare updates of a row of PostgreSQL.
    PgUpdates { url: String },
    /// A peer: PostgreSQL's own locks of sessions.
    PgAdvisory { url: String },
    /// `leasehold-etcd`.
    Etcd { url: String },
    /// A floor: a bare put, and a bare delete, in etcd.
    EtcdPuts { url: String },
    /// A peer: the lock that etcd itself serves.
    EtcdLock { url: String },
    /// A peer: a process `etcdctl lock` for each lock.
    Etcdctl { url: String },
    /// A floor: `SELECT 1` is a cycle.
    Select { url: String },
    /// A floor: two bare updates of a row.
    Updates { url: String },
    /// A peer: the lock of the blogs.
    InsertDelete { url: String },
    /// A floor: `PING` is a cycle.
    Ping { url: String },
    /// A floor: `SET NX PX`, then compare and delete, on a bare fred client.
    Bare { url: String },
    /// A floor: the same, behind a queue inside the process, so that a command never finds the key taken.
    BareQueued { url: String },
    /// A floor: the same to all, done when a majority has answered.
    BareFanOut { urls: Vec<String> },
    /// A floor: `flock(2)`, write, unlock, by system calls.
    RawFile { folder: PathBuf },
    /// The peer in Rust. It retries after a random pause below this one.
    Rslock { urls: Vec<String>, retry_millis: u64 },
}

impl Locks {
    /// Connects and runs the load. `start` is asked for when it could begin.
    pub(crate) async fn run(&self, load: &Load, start: impl FnOnce() -> Result<u64>) -> Result<Log> {
        match self {
            Self::RedisSingle { url, local_handoff } => {
                load.run(ours::redis_single(url, *local_handoff).await?, start()?).await
            }
            Self::RedisDropped { url } => load.run(ours::Dropped(ours::redis_single(url, true).await?), start()?).await,
            Self::RedisReentrant { url } => load.run(ours::redis_reentrant(url).await?, start()?).await,
            Self::Redlock { urls, fencing } => load.run(ours::redlock(urls, *fencing).await?, start()?).await,
            Self::File { folder } => load.run(ours::file(folder)?, start()?).await,
            Self::Agent { socket } => load.run(ours::agent(socket).await?, start()?).await,
            Self::AgentLines { socket } => load.run(agent::Lines::new(socket), start()?).await,
            Self::MysqlUnique { url, local_handoff, advisory_queue } => {
                load.run(mysql::mysql_unique(url, *local_handoff, *advisory_queue).await?, start()?).await
            }
            Self::MysqlRw { url } => load.run(ours::mysql_rw(url).await?, start()?).await,
            Self::Postgres { url } => load.run(ours::postgres(url).await?, start()?).await,
            Self::PgUpdates { url } => load.run(postgres::Updates::connect(url).await?, start()?).await,
            Self::PgAdvisory { url } => load.run(postgres::Advisory::new(url), start()?).await,
            Self::RedisRw { url, readers: false } => load.run(ours::redis_rw(url).await?, start()?).await,
            Self::RedisRw { url, readers: true } => load.run(ours::redis_readers(url).await?, start()?).await,
            Self::Etcd { url } => load.run(ours::etcd(url).await?, start()?).await,
            Self::EtcdPuts { url } => load.run(etcd::Puts::connect(url).await?, start()?).await,
            Self::EtcdLock { url } => load.run(etcd::Served::connect(url).await?, start()?).await,
            Self::Etcdctl { url } => load.run(etcd::Processes::new(url), start()?).await,
            Self::Select { url } => load.run(mysql::Select::connect(url)?, start()?).await,
            Self::Updates { url } => load.run(mysql::Updates::connect(url).await?, start()?).await,
            Self::InsertDelete { url } => load.run(mysql::InsertDelete::connect(url).await?, start()?).await,
            Self::Ping { url } => load.run(bare::Ping::connect(url).await?, start()?).await,
            Self::Bare { url } => load.run(bare::Bare::connect(url).await?, start()?).await,
            Self::BareQueued { url } => load.run(bare::Queued::connect(url).await?, start()?).await,
            Self::BareFanOut { urls } => load.run(bare::FanOut::connect(urls).await?, start()?).await,
            Self::RawFile { folder } => load.run(raw_file::RawFile::new(folder), start()?).await,
            Self::Rslock { urls, retry_millis } => {
                load.run(rslock::Rslock::connect(urls, *retry_millis).await?, start()?).await
            }
        }
    }
}
