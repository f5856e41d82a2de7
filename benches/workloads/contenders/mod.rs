//! Everything that the workloads let lock, by a name that also a child process understands.

mod agent;
pub(crate) mod bare;
mod etcd;
pub(crate) mod mysql;
pub(crate) mod ours;
mod postgres;
mod raw_file;
mod rslock;

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::load::{Load, Result};
use crate::log::Log;

/// A contender.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Kind {
    RedisSingle,
    /// Without the hand-off inside the process.
    RedisSingleNoHandoff,
    /// The guards are dropped instead of released.
    RedisDropped,
    /// One session for all tasks.
    RedisReentrant,
    RedisWriters,
    RedisReaders,
    RedlockUnfenced,
    Redlock,
    File,
    /// The backend `agent:`.
    Agent,
    /// The lines of an agent, with a connection for each lock.
    AgentLines,
    MysqlUnique,
    MysqlUniqueQueue,
    /// With the advisory queue, and without the hand-off inside the process.
    MysqlUniqueQueueNoHandoff,
    /// Writers only.
    MysqlRw,
    Postgres,
    Etcd,
    /// A floor: `PING` is a cycle.
    Ping,
    /// A floor: `SET NX PX`, then compare and delete, on a bare fred client.
    Bare,
    /// A floor: `Bare` behind a queue inside the process, so that a command never finds the key taken.
    BareQueued,
    /// A floor: `Bare` to all, done when a majority has answered.
    BareFanOut,
    /// A floor: `flock(2)`, write, unlock, by system calls.
    RawFile,
    /// A floor: `SELECT 1` of MySQL is a cycle.
    Select,
    /// A floor: two bare updates of a row of MySQL.
    Updates,
    /// A floor: two bare updates of a row of PostgreSQL.
    PgUpdates,
    /// A floor: a bare put, and a bare delete, in etcd.
    EtcdPuts,
    /// The peer in Rust, which retries after a random pause of up to 200 ms.
    Rslock,
    /// The same, with up to 5 ms.
    RslockEager,
    /// A peer: the lock of the blogs on MySQL.
    InsertDelete,
    /// A peer: PostgreSQL's own locks of sessions.
    PgAdvisory,
    /// A peer: the lock that etcd itself serves.
    EtcdLock,
    /// A peer: a process `etcdctl lock` for each lock.
    Etcdctl,
}

/// A contender and where its store is: the URLs of servers, a folder or a socket.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Locks {
    pub(crate) kind: Kind,
    pub(crate) urls: Vec<String>,
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

impl Locks {
    /// Connects and runs the load. `start` is asked for when it could begin.
    pub(crate) async fn run(&self, load: &Load, start: impl FnOnce() -> Result<u64>) -> Result<Log> {
        let urls = &self.urls;
        let url = urls.first().ok_or("no store")?;
        let path = Path::new(url);
        match self.kind {
            Kind::RedisSingle => load.run(ours::redis_single(url, true).await?, start()?).await,
            Kind::RedisSingleNoHandoff => load.run(ours::redis_single(url, false).await?, start()?).await,
            Kind::RedisDropped => load.run(ours::Dropped(ours::redis_single(url, true).await?), start()?).await,
            Kind::RedisReentrant => load.run(ours::redis_reentrant(url).await?, start()?).await,
            Kind::RedisWriters => load.run(ours::redis_rw(url).await?, start()?).await,
            Kind::RedisReaders => load.run(ours::redis_readers(url).await?, start()?).await,
            Kind::RedlockUnfenced => load.run(ours::redlock(urls, false).await?, start()?).await,
            Kind::Redlock => load.run(ours::redlock(urls, true).await?, start()?).await,
            Kind::File => load.run(ours::file(path)?, start()?).await,
            Kind::Agent => load.run(ours::agent(path).await?, start()?).await,
            Kind::AgentLines => load.run(agent::Lines::new(path), start()?).await,
            Kind::MysqlUnique => load.run(mysql::mysql_unique(url, true, false).await?, start()?).await,
            Kind::MysqlUniqueQueue => load.run(mysql::mysql_unique(url, true, true).await?, start()?).await,
            Kind::MysqlUniqueQueueNoHandoff => load.run(mysql::mysql_unique(url, false, true).await?, start()?).await,
            Kind::MysqlRw => load.run(ours::mysql_rw(url).await?, start()?).await,
            Kind::Postgres => load.run(ours::postgres(url).await?, start()?).await,
            Kind::Etcd => load.run(ours::etcd(url).await?, start()?).await,
            Kind::Ping => load.run(bare::Ping::connect(url).await?, start()?).await,
            Kind::Bare => load.run(bare::Bare::connect(url).await?, start()?).await,
            Kind::BareQueued => load.run(bare::Queued::connect(url).await?, start()?).await,
            Kind::BareFanOut => load.run(bare::FanOut::connect(urls).await?, start()?).await,
            Kind::RawFile => load.run(raw_file::RawFile::new(path)?, start()?).await,
            Kind::Select => load.run(mysql::Select::connect(url)?, start()?).await,
            Kind::Updates => load.run(mysql::Updates::connect(url).await?, start()?).await,
            Kind::PgUpdates => load.run(postgres::Updates::connect(url).await?, start()?).await,
            Kind::EtcdPuts => load.run(etcd::Puts::connect(url).await?, start()?).await,
            Kind::Rslock => load.run(rslock::Rslock::connect(urls, 200).await?, start()?).await,
            Kind::RslockEager => load.run(rslock::Rslock::connect(urls, 5).await?, start()?).await,
            Kind::InsertDelete => load.run(mysql::InsertDelete::connect(url).await?, start()?).await,
            Kind::PgAdvisory => load.run(postgres::Advisory::new(url), start()?).await,
            Kind::EtcdLock => load.run(etcd::Served::connect(url).await?, start()?).await,
            Kind::Etcdctl => load.run(etcd::Processes::new(url), start()?).await,
        }
    }
}
