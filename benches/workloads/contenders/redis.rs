//! What is compared on Redis: floors, which are the round trips of a lock through the driver that ours use, without fencing or anything
//! else, and the peer in Rust.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use fred::clients::Client;
use fred::interfaces::{ClientLike, KeysInterface, LuaInterface};
use fred::types::config::Config;
use fred::types::{Builder, Expiration, SetOptions};
use futures::stream::{FuturesUnordered, StreamExt};
use rslock::{LockGuard, LockManager};
use tokio::sync::{Mutex, OwnedMutexGuard};
use tokio::time::sleep;

use crate::load::{Contender, Key, Result};

pub(crate) const LEASE_MILLIS: i64 = 30_000;
const COMPARE_AND_RENEW: &str =
    "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('PEXPIRE', KEYS[1], ARGV[2]) else return 0 end";
const COMPARE_AND_DELETE: &str =
    "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) else return 0 end";

pub(crate) async fn connect(url: &str) -> Result<Client> {
    let client = Builder::from_config(Config::from_url(url)?).build()?;
    client.init().await?;
    Ok(client)
}

pub(crate) struct Ping(pub(crate) Client);

impl Contender for Ping {
    type Held = ();

    async fn acquire(&self, _key: &Key) -> Result<()> {
        Ok(self.0.ping::<()>(None).await?)
    }

    async fn release(&self, _key: &Key, _held: ()) -> Result<()> {
        Ok(())
    }
}

/// One connection.
pub(crate) struct Bare {
    pub(crate) client: Client,
    pub(crate) compare_and_delete: String,
    compare_and_renew: String,
    owners: AtomicU64,
    /// A fair queue before it.
    queue: Option<Arc<Mutex<()>>>,
}

impl Bare {
    pub(crate) async fn connect(url: &str) -> Result<Self> {
        let client = connect(url).await?;
        let compare_and_delete = client.script_load(COMPARE_AND_DELETE).await?;
        let compare_and_renew = client.script_load(COMPARE_AND_RENEW).await?;
        let owners = AtomicU64::new(u64::from(std::process::id()) << 32);
        Ok(Self { client, compare_and_delete, compare_and_renew, owners, queue: None })
    }

    /// With a queue, so that a command never finds the key taken.
    pub(crate) async fn queued(url: &str) -> Result<Self> {
        Ok(Self { queue: Some(Arc::default()), ..Self::connect(url).await? })
    }

    /// Sets the key, when it is free, to the value that says that it is this owner's.
    pub(crate) async fn take(&self, key: &str) -> Result<String> {
        let owner = self.owner();
        while !self.set(key, &owner).await? {
            sleep(Duration::from_millis(1)).await;
        }
        Ok(owner)
    }

    /// Gives the owner a whole lease again.
    pub(crate) async fn renew(&self, key: &str, owner: &str) -> Result<()> {
        let arguments = vec![owner.to_owned(), LEASE_MILLIS.to_string()];
        is_ours(self.client.evalsha::<u64, _, _, _>(self.compare_and_renew.as_str(), key, arguments).await? == 1)
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

fn is_ours(is_so: bool) -> Result<()> {
    if is_so { Ok(()) } else { Err("the key was not ours any more".into()) }
}

impl Contender for Bare {
    type Held = (String, Option<OwnedMutexGuard<()>>);
    const PREFIX: &'static str = "bare/";

    async fn acquire(&self, key: &Key) -> Result<Self::Held> {
        let turn = match &self.queue {
            Some(queue) => Some(Arc::clone(queue).lock_owned().await),
            None => None,
        };
        Ok((self.take(key.name.as_str()).await?, turn))
    }

    async fn release(&self, key: &Key, (owner, turn): Self::Held) -> Result<()> {
        let deleted = self.delete(key.name.as_str(), &owner).await;
        drop(turn);
        is_ours(deleted?)
    }
}

/// One connection to each of several servers.
pub(crate) struct FanOut(Vec<Bare>);

impl FanOut {
    pub(crate) async fn connect(urls: &[String]) -> Result<Self> {
        Ok(Self(futures::future::try_join_all(urls.iter().map(|url| Bare::connect(url))).await?))
    }

    /// Asks all, and returns when a majority has said yes. What is under way goes on, in order, on each connection.
    async fn majority(&self, asks: impl Iterator<Item = impl Future<Output = Result<bool>> + Send>) -> Result<()> {
        let mut missing = self.0.len() / 2 + 1;
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
    type Held = String;
    const PREFIX: &'static str = Bare::PREFIX;

    async fn acquire(&self, key: &Key) -> Result<String> {
        let owner = self.0[0].owner();
        self.majority(self.0.iter().map(|node| node.set(key.name.as_str(), &owner))).await?;
        Ok(owner)
    }

    async fn release(&self, key: &Key, owner: String) -> Result<()> {
        self.majority(self.0.iter().map(|node| node.delete(key.name.as_str(), &owner))).await
    }
}

/// `rslock` with a lease of 30 s. It waits by trying again: three times, then three times more, and so on.
pub(crate) struct Rslock(LockManager);

impl Rslock {
    pub(crate) async fn connect(urls: &[String], retry_millis: u64) -> Result<Self> {
        let mut manager = LockManager::new(urls.to_vec());
        manager.set_retry(3, Duration::from_millis(retry_millis));
        // It connects at the first use, which is not to be measured.
        manager.acquire("bench/warm", Duration::from_secs(30)).await?.release().await;
        Ok(Self(manager))
    }
}

impl Contender for Rslock {
    type Held = LockGuard;
    const PREFIX: &'static str = "rslock/";

    async fn acquire(&self, key: &Key) -> Result<LockGuard> {
        Ok(self.0.acquire(key.name.as_str(), Duration::from_secs(30)).await?)
    }

    async fn release(&self, _key: &Key, held: LockGuard) -> Result<()> {
        held.release().await;
        Ok(())
    }
}
