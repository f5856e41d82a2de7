use std::time::Duration;

use leasehold_etcd::{Etcd, LockGuard, LockKey, LockOptions, Locker, Wait};

pub(crate) async fn clients(url: &str) -> [Etcd; 2] {
    [Etcd::connect(url).await.unwrap(), Etcd::connect(url).await.unwrap()]
}

pub(crate) fn key(name: &str) -> LockKey {
    LockKey::new(name).unwrap()
}

/// Options with a wait that only ends because something is broken.
pub(crate) fn patient() -> LockOptions {
    LockOptions::new().wait(Wait::UpTo(Duration::from_secs(120)))
}

pub(crate) async fn take(locks: &Etcd, name: &str, ttl: Duration) -> LockGuard {
    locks.acquire(&key(name), &patient().ttl(ttl)).await.unwrap().unwrap()
}
