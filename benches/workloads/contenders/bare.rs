//! Floors on Redis: the round trips of a lock through the driver that ours use, without fencing or anything else.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use fred::clients::Client;
use fred::interfaces::{ClientLike, KeysInterface, LuaInterface};
use fred::types::config::Config;
use fred::types::{Builder, Expiration, SetOptions};
use futures::stream::{FuturesUnordered, StreamExt};
use tokio::sync::{Mutex, OwnedMutexGuard};
use tokio::time::sleep;

use crate::load::{Contender, Result};

const LEASE_MILLIS: i64 = 30_000;
const COMPARE_AND_RENEW: &str =
    "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('PEXPIRE', KEYS[1], ARGV[2]) else return 0 end";
pub(crate) const COMPARE_AND_DELETE: &str =
    "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) else return 0 end";

pub(crate) async fn connect(url: &str) -> Result<Client> {
    let client = Builder::from_config(Config::from_url(url)?).build()?;
    client.init().await?;
    Ok(client)
}

pub(crate) struct Ping(Client);

impl Ping {
    pub(crate) async fn connect(url: &str) -> Result<Self> {
        Ok(Self(connect(url).await?))
    }
}

impl Contender for Ping {
    type Key = ();
    type Held = ();

    fn key(&self, _name: &str) -> Result<()> {
        Ok(())
    }

    async fn acquire(&self, _key: &()) -> Result<()> {
        Ok(self.0.ping::<()>(None).await?)
    }

    async fn release(&self, _held: ()) -> Result<()> {
        Ok(())
    }
}

/// One connection.
pub(crate) struct Bare {
    client: Client,
    compare_and_delete: String,
    compare_and_renew: String,
    owners: AtomicU64,
}

/// A key and the value that says that it is ours.
pub(crate) struct Taken {
    key: Arc<str>,
    owner: String,
}

impl Bare {
    pub(crate) async fn connect(url: &str) -> Result<Self> {
        let client = connect(url).await?;
        let compare_and_delete = client.script_load(COMPARE_AND_DELETE).await?;
        let compare_and_renew = client.script_load(COMPARE_AND_RENEW).await?;
        let owners = AtomicU64::new(u64::from(std::process::id()) << 32);
        Ok(Self { client, compare_and_delete, compare_and_renew, owners })
    }

    /// Gives it a whole lease again.
    pub(crate) async fn renew(&self, held: &Taken) -> Result<()> {
        let arguments = vec![held.owner.clone(), LEASE_MILLIS.to_string()];
        let renewed: u64 = self.client.evalsha(self.compare_and_renew.as_str(), &*held.key, arguments).await?;
        if renewed == 1 { Ok(()) } else { Err("the key was not ours any more".into()) }
    }

    /// Whether anybody has it.
    pub(crate) async fn is_taken(&self, key: &str) -> Result<bool> {
        Ok(self.client.exists::<u64, _>(key).await? == 1)
    }

    fn owner(&self) -> String {
        format!("{:016x}", self.owners.fetch_add(1, Ordering::Relaxed))
    }

    async fn set(&self, key: &str, owner: &str) -> Result<bool> {
        let lease = Some(Expiration::PX(LEASE_MILLIS));
        let set: Option<String> = self.client.set(key, owner, lease, Some(SetOptions::NX), false).await?;
        Ok(set.is_some())
    }

    async fn delete(&self, key: &str, owner: &str) -> Result<bool> {
        let deleted: u64 = match self.client.evalsha(self.compare_and_delete.as_str(), key, owner).await {
            // One node of a Cluster has loaded it.
            Err(refused) if refused.details().contains("NOSCRIPT") => {
                self.client.eval(COMPARE_AND_DELETE, key, owner).await?
            }
            answer => answer?,
        };
        Ok(deleted == 1)
    }
}

impl Contender for Bare {
    type Key = Arc<str>;
    type Held = Taken;

    fn key(&self, name: &str) -> Result<Arc<str>> {
        Ok(format!("bare/{name}").into())
    }

    async fn acquire(&self, key: &Arc<str>) -> Result<Taken> {
        let owner = self.owner();
        while !self.set(key, &owner).await? {
            sleep(Duration::from_millis(1)).await;
        }
        Ok(Taken { key: Arc::clone(key), owner })
    }

    async fn release(&self, held: Taken) -> Result<()> {
        if self.delete(&held.key, &held.owner).await? { Ok(()) } else { Err("the key was not ours any more".into()) }
    }
}

/// One connection, and a fair queue before it.
pub(crate) struct Queued {
    bare: Bare,
    queue: Arc<Mutex<()>>,
}

impl Queued {
    pub(crate) async fn connect(url: &str) -> Result<Self> {
        Ok(Self { bare: Bare::connect(url).await?, queue: Arc::default() })
    }
}

impl Contender for Queued {
    type Key = Arc<str>;
    type Held = (Taken, OwnedMutexGuard<()>);

    fn key(&self, name: &str) -> Result<Arc<str>> {
        self.bare.key(name)
    }

    async fn acquire(&self, key: &Arc<str>) -> Result<(Taken, OwnedMutexGuard<()>)> {
        let turn = Arc::clone(&self.queue).lock_owned().await;
        Ok((self.bare.acquire(key).await?, turn))
    }

    async fn release(&self, (taken, turn): (Taken, OwnedMutexGuard<()>)) -> Result<()> {
        let released = self.bare.release(taken).await;
        drop(turn);
        released
    }
}

/// One connection to each of several servers.
pub(crate) struct FanOut {
    nodes: Vec<Bare>,
}

impl FanOut {
    pub(crate) async fn connect(urls: &[String]) -> Result<Self> {
        let nodes = futures::future::try_join_all(urls.iter().map(|url| Bare::connect(url))).await?;
        Ok(Self { nodes })
    }

    /// Asks all, and returns when a majority has said yes. What is under way goes on, in order, on each connection.
    async fn majority(&self, asks: impl Iterator<Item = impl Future<Output = Result<bool>> + Send>) -> Result<()> {
        let mut missing = self.nodes.len() / 2 + 1;
        let mut answers: FuturesUnordered<_> = asks.collect();
        while let Some(answer) = answers.next().await {
            missing -= usize::from(matches!(answer, Ok(true)));
            if missing == 0 {
                return Ok(());
            }
        }
        Err("no majority for a key that nobody else wants".into())
    }
}

impl Contender for FanOut {
    type Key = Arc<str>;
    type Held = Taken;

    fn key(&self, name: &str) -> Result<Arc<str>> {
        Ok(format!("bare/{name}").into())
    }

    async fn acquire(&self, key: &Arc<str>) -> Result<Taken> {
        let taken = Taken { key: Arc::clone(key), owner: self.nodes[0].owner() };
        self.majority(self.nodes.iter().map(|node| node.set(&taken.key, &taken.owner))).await?;
        Ok(taken)
    }

    async fn release(&self, held: Taken) -> Result<()> {
        self.majority(self.nodes.iter().map(|node| node.delete(&held.key, &held.owner))).await
    }
}
