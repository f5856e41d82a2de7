use std::io::{Read, Write};
use std::net::TcpStream;
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

/// How many requests of this method the server was sent.
pub(crate) fn count(port: u16, method: &str) -> u64 {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.write_all(b"GET /metrics HTTP/1.0\r\n\r\n").unwrap();
    let mut metrics = String::new();
    stream.read_to_string(&mut metrics).unwrap();
    let is_it = |line: &&str| line.starts_with("grpc_server_started_total") && line.contains(method);
    let count = metrics.lines().find(is_it).and_then(|line| line.rsplit(' ').next()?.parse().ok());
    count.unwrap_or_else(|| panic!("no {method} in the metrics"))
}
