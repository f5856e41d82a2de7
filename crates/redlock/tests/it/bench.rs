use std::time::Duration;

use leasehold_redlock::{
    ErrorKind, LockGuard, LockKey, LockOptions, LockerExt, NodeCondition, Redlock, RedlockBuilder, Result, Wait,
};
use leasehold_testkit::redis::Server;
use leasehold_testkit::{Proxy, needs};
use tokio::task::JoinSet;

/// Far more than anything takes that does not hang.
pub(crate) const AMPLE: Duration = Duration::from_secs(60);

/// Some servers, which end with this value.
pub(crate) struct Nodes(pub(crate) Vec<Server>);

impl Nodes {
    pub(crate) async fn start(count: usize) -> Option<Self> {
        let mut servers = Vec::new();
        for _ in 0..count {
            servers.push(Server::start(&[]).await?);
        }
        Some(Self(servers))
    }

    pub(crate) fn builder(&self) -> RedlockBuilder {
        Redlock::builder().nodes(self.0.iter().map(Server::url))
    }

    pub(crate) async fn redlock(&self) -> Redlock {
        self.builder().connect().await.unwrap()
    }

    /// The URLs of the nodes by way of these proxies, one for each node.
    pub(crate) fn urls_through<'n>(&'n self, proxies: &'n [Proxy]) -> impl Iterator<Item = String> + 'n {
        proxies.iter().zip(&self.0).map(|(proxy, node)| proxy.url(&node.url()))
    }

    /// On how many nodes somebody has the key.
    pub(crate) async fn having(&self, key: &str) -> usize {
        let mut having = 0;
        for server in &self.0 {
            having += usize::try_from(server.ask(&["EXISTS", &lock(key)]).await.number()).unwrap();
        }
        having
    }
}

/// So many nodes, and a locker on them. Where there is no `redis-server`, the test is ignored.
pub(crate) async fn deployment(nodes: usize) -> (Nodes, Redlock) {
    let nodes = needs("redis-server", Nodes::start(nodes).await);
    let locks = nodes.redlock().await;
    (nodes, locks)
}

pub(crate) fn lock(key: &str) -> String {
    format!("{{leasehold:{key}}}:lock")
}

pub(crate) fn fence(key: &str) -> String {
    format!("{{leasehold:{key}}}:fence")
}

/// A lease that outlasts every wait of a test, so that nothing is cured by its end.
const LEASE: Duration = Duration::from_secs(300);

/// Waits amply.
pub(crate) fn patient() -> LockOptions {
    LockOptions::new().ttl(LEASE).wait(Wait::UpTo(AMPLE))
}

pub(crate) fn once() -> LockOptions {
    LockOptions::new().ttl(LEASE).wait(Wait::Never)
}

pub(crate) async fn acquire(locks: &Redlock, key: &str, options: &LockOptions) -> Result<Option<LockGuard>> {
    locks.acquire(&LockKey::new(key)?, options).await
}

pub(crate) async fn take(locks: &Redlock, key: &str) -> LockGuard {
    acquire(locks, key, &patient()).await.unwrap().expect("the key becomes free")
}

pub(crate) fn token(guard: &LockGuard) -> u64 {
    guard.fencing_token().expect("a token").get()
}

/// Takes and releases the key, and gives the token.
pub(crate) async fn cycle(locks: &Redlock, key: &str) -> u64 {
    let guard = take(locks, key).await;
    let token = token(&guard);
    guard.release().await.unwrap();
    token
}

/// How many tasks cycle at a time.
pub(crate) const TASKS: usize = 64;

/// Has each task take and release so many locks, one after the other: those that this names for the task.
pub(crate) async fn cycle_many(locks: &Redlock, cycles: usize, key: fn(usize, usize) -> String) {
    let mut cycling = JoinSet::new();
    for task in 0..TASKS {
        let locks = locks.clone();
        cycling.spawn(async move {
            for number in 0..cycles {
                cycle(&locks, &key(task, number)).await;
            }
        });
    }
    cycling.join_all().await;
}

pub(crate) async fn conditions(locks: &Redlock) -> Vec<NodeCondition> {
    locks.node_states().await.into_iter().map(|state| state.condition).collect()
}

/// One attempt that fails for the moment, and what it says.
pub(crate) async fn unavailable(locks: &Redlock, key: &str) -> leasehold_redlock::Error {
    let error = acquire(locks, key, &once()).await.expect_err("too few nodes answer");
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    error
}
