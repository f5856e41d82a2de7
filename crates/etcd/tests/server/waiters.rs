//! Callers of one process that have nothing to do with each other.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use futures::poll;
use leasehold_etcd::{Attempt, Backed, Backend, Claim, Etcd, LockerExt, Mode, Notification};
use leasehold_testkit::etcd::Cluster;
use leasehold_testkit::{PATIENCE, Proxy, eventually};

use crate::clients::{clients, key, take};

pub(crate) async fn a_caller_that_is_not_polled_while_it_connects_stalls_nobody() {
    let cluster = Cluster::one(&[]).await;
    let proxy = Proxy::start(cluster.ports()[0]);
    let ours = Etcd::connect(&proxy.url(&cluster.url())).await.unwrap();
    proxy.refuse(true);
    proxy.cut();
    eventually("the connection is given up", async || ours.try_lock("k").await.is_err()).await;
    proxy.refuse(false);
    let mut stalled = Box::pin(ours.try_lock("stalled"));
    assert!(poll!(stalled.as_mut()).is_pending());
    // From here on it is kept, and polled no more.
    eventually("others are answered", async || ours.try_lock("k").await.is_ok()).await;
    drop(stalled);
}

/// How many requests of this method the server was sent.
fn count(port: u16, method: &str) -> u64 {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.write_all(b"GET /metrics HTTP/1.0\r\n\r\n").unwrap();
    let mut metrics = String::new();
    stream.read_to_string(&mut metrics).unwrap();
    let is_it = |line: &&str| line.starts_with("grpc_server_started_total") && line.contains(method);
    let count = metrics.lines().find(is_it).and_then(|line| line.rsplit(' ').next()?.parse().ok());
    count.unwrap_or_else(|| panic!("no {method} in the metrics"))
}

pub(crate) async fn a_waiter_asks_nothing_when_others_wait_for_other_keys() {
    const OTHERS: u64 = 20;
    let cluster = Cluster::one(&[]).await;
    let port = cluster.ports()[0];
    let [ours, theirs] = clients(&cluster.url()).await;
    let (backend, long) = (ours.engine().backend(), Duration::from_secs(600));
    let mut claims = Vec::new();
    let mut held = Vec::new();
    for number in 0..=OTHERS {
        let name = format!("k{number}");
        held.push(take(&theirs, &name, long).await);
        claims.push(Claim { waits: true, ..Claim::new(&key(&name), Mode::Exclusive, long) });
    }
    let queued = async |claim| matches!(backend.try_acquire(claim).await.unwrap(), Attempt::Queued { .. });
    assert!(queued(&claims[0]).await);
    let mut subscription = backend.notifications().unwrap().subscribe(&claims[0].key).await.unwrap();
    let listener = tokio::spawn(async move { subscription.next().await });
    eventually("it watches", async || count(port, "\"Watch\"") > 0).await;

    let before = count(port, "\"Txn\"");
    for claim in &claims[1..] {
        assert!(queued(claim).await);
    }
    let asked = count(port, "\"Txn\"") - before;
    // Each reads its line and writes its entry.
    assert!(asked < 2 * OTHERS + OTHERS / 2, "{asked} transactions for {OTHERS} waiters");

    held.swap_remove(0).release().await.unwrap();
    let told = tokio::time::timeout(PATIENCE, listener).await.expect("nothing was told").unwrap();
    assert!(matches!(told, Notification::Granted { owner, .. } if owner == claims[0].owner), "{told:?}");
}
