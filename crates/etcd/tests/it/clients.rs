use std::time::Duration;

use leasehold_etcd::{Etcd, LockGuard, LockKey, LockOptions, LockerExt, Wait};
use leasehold_testkit::Proxy;
use leasehold_testkit::etcd::Cluster;
use leasehold_testkit::launch::etcd::get;

pub(crate) async fn clients(url: &str) -> [Etcd; 2] {
    [Etcd::connect(url).await.unwrap(), Etcd::connect(url).await.unwrap()]
}

/// A server, and a client that reaches it through a proxy.
pub(crate) async fn behind_a_proxy() -> (Cluster, Proxy, Etcd) {
    let cluster = Cluster::one(&[]).await;
    let proxy = Proxy::start(cluster.ports()[0]);
    let ours = Etcd::connect(&proxy.url(&cluster.url())).await.unwrap();
    (cluster, proxy, ours)
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

/// Has the server ask for names and passwords, and makes a user with this right below a prefix.
pub(crate) async fn log_in(cluster: &Cluster, user: &str, right: &str, prefix: &str) -> Result<(), String> {
    let name = user.split(':').next().unwrap();
    for command in [
        "user add root:root",
        "user grant-role root root",
        &format!("user add {user}"),
        &format!("role add {name}"),
        &format!("role grant-permission {name} {right} --prefix=true {prefix}"),
        &format!("user grant-role {name} {name}"),
        "auth enable",
    ] {
        cluster.control(&command.split(' ').collect::<Vec<_>>()).await?;
    }
    Ok(())
}

/// How many requests of this method the server was sent.
pub(crate) fn count(port: u16, method: &str) -> u64 {
    metric(port, |line| line.starts_with("grpc_server_started_total") && line.contains(method))
}

/// The leases that the server has, as `etcdctl` names them.
pub(crate) async fn leases(cluster: &Cluster) -> Vec<String> {
    let told = cluster.control(&["lease", "list"]).await.unwrap();
    told.lines().skip(1).map(str::to_owned).collect()
}

/// How many watches the server has open.
pub(crate) fn watches(port: u16) -> u64 {
    metric(port, |line| line.starts_with("etcd_debugging_mvcc_watcher_total"))
}

pub(crate) fn metric(port: u16, is_it: impl Fn(&str) -> bool) -> u64 {
    let metrics = get(port, "metrics").unwrap();
    let found = metrics.lines().find(|line| is_it(line)).and_then(|line| line.rsplit(' ').next()?.parse().ok());
    found.expect("it is in the metrics")
}
