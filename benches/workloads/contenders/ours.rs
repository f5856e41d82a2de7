use std::path::Path;

use leasehold_agent::AgentLocks;
use leasehold_core::{
    Engine, EngineOptions, LocalHandoff, LockGuard, LockKey, LockOptions, Locker, LockerExt, ReadGuard, ReleaseOutcome,
    RwLocker, RwLockerExt,
};
use leasehold_etcd::Etcd;
use leasehold_file::FileLocks;
use leasehold_mysql_rw::MysqlRw;
use leasehold_postgres::Postgres;
use leasehold_redis_reentrant::{RedisReentrant, Session};
use leasehold_redis_rw::RedisRw;
use leasehold_redis_single::RedisSingle;
use leasehold_redlock::Redlock;

use crate::load::{Contender, Result};

/// A backend of Leasehold with default options: a lease of 30 s that renews itself, fencing where there is any.
pub(crate) struct Ours<L> {
    locks: L,
    options: LockOptions,
}

pub(crate) async fn redis_single(url: &str, local_handoff: bool) -> Result<Ours<impl Locker + use<>>> {
    let settings =
        EngineOptions::new().local_handoff(if local_handoff { LocalHandoff::new() } else { LocalHandoff::off() });
    let backend = RedisSingle::builder().url(url).backend().await?;
    Ok(ours(Engine::with(backend, settings)))
}

pub(crate) async fn redlock(urls: &[String], fencing: bool) -> Result<Ours<Redlock>> {
    // Programs that share keys must agree on fencing, so each kind has keys of its own.
    let namespace = if fencing { "fenced" } else { "unfenced" };
    Ok(ours(Redlock::builder().nodes(urls).fencing(fencing).namespace(namespace).connect().await?))
}

pub(crate) async fn redis_reentrant(url: &str) -> Result<Ours<Session>> {
    Ok(ours(RedisReentrant::connect(url).await?.session()))
}

pub(crate) async fn redis_rw(url: &str) -> Result<Ours<RedisRw>> {
    Ok(ours(RedisRw::connect(url).await?))
}

pub(crate) async fn redis_readers(url: &str) -> Result<Readers<RedisRw>> {
    Ok(Readers { locks: RedisRw::connect(url).await?, options: LockOptions::new() })
}

pub(crate) async fn etcd(url: &str) -> Result<Ours<Etcd>> {
    Ok(ours(Etcd::connect(url).await?))
}

pub(crate) async fn mysql_rw(url: &str) -> Result<Ours<MysqlRw>> {
    Ok(ours(MysqlRw::connect(url).await?))
}

pub(crate) async fn postgres(url: &str) -> Result<Ours<Postgres>> {
    Ok(ours(Postgres::connect(url).await?))
}

pub(crate) fn file(folder: &Path) -> Result<Ours<FileLocks>> {
    Ok(ours(FileLocks::open(folder)?))
}

pub(crate) async fn agent(socket: &Path) -> Result<Ours<AgentLocks>> {
    Ok(ours(AgentLocks::builder().path(socket).connect().await?))
}

/// Any locker, in the loop.
pub(crate) fn ours<L>(locks: L) -> Ours<L> {
    Ours { locks, options: LockOptions::new() }
}

impl<L: Locker + 'static> Contender for Ours<L> {
    type Key = LockKey;
    type Held = LockGuard;

    fn key(&self, name: &str) -> Result<LockKey> {
        Ok(LockKey::new(name)?)
    }

    async fn acquire(&self, key: &LockKey) -> Result<LockGuard> {
        self.locks.acquire(key, &self.options).await?.ok_or_else(|| "a wait without end ended".into())
    }

    async fn release(&self, held: LockGuard) -> Result<()> {
        was_held(held.release().await?)
    }

    fn token(held: &LockGuard) -> u64 {
        held.fencing_token().map_or(0, u64::from)
    }
}

/// The same, with guards that are dropped instead of released.
pub(crate) struct Dropped<L>(pub(crate) Ours<L>);

impl<L: Locker + 'static> Contender for Dropped<L> {
    type Key = LockKey;
    type Held = LockGuard;

    fn key(&self, name: &str) -> Result<LockKey> {
        self.0.key(name)
    }

    async fn acquire(&self, key: &LockKey) -> Result<LockGuard> {
        self.0.acquire(key).await
    }

    async fn release(&self, held: LockGuard) -> Result<()> {
        drop(held);
        Ok(())
    }

    fn token(held: &LockGuard) -> u64 {
        Ours::<L>::token(held)
    }
}

fn was_held(outcome: ReleaseOutcome) -> Result<()> {
    match outcome {
        ReleaseOutcome::Released => Ok(()),
        ReleaseOutcome::AlreadyLost(reason) => Err(format!("lost while it was held: {reason}").into()),
    }
}

/// The readers of a backend, with default options.
pub(crate) struct Readers<L> {
    locks: L,
    options: LockOptions,
}

impl<L: RwLocker + 'static> Contender for Readers<L> {
    type Key = LockKey;
    type Held = ReadGuard;

    fn key(&self, name: &str) -> Result<LockKey> {
        Ok(LockKey::new(name)?)
    }

    async fn acquire(&self, key: &LockKey) -> Result<ReadGuard> {
        self.locks.acquire_read(key, &self.options).await?.ok_or_else(|| "a wait without end ended".into())
    }

    async fn release(&self, held: ReadGuard) -> Result<()> {
        was_held(held.release().await?)
    }

    fn token(held: &ReadGuard) -> u64 {
        held.fencing_token().map_or(0, u64::from)
    }
}
