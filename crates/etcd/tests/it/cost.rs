//! What a lock costs the server: a way that needs fewer requests is one that nothing else would miss.

use std::time::Duration;

use leasehold_etcd::LockerExt;
use leasehold_testkit::etcd::Cluster;
use leasehold_testkit::test;

use crate::clients::{clients, count, take};

const LEASE: Duration = Duration::from_secs(600);
const TIMES: u64 = 20;

#[test(multi_thread, server)]
async fn a_lock_is_two_transactions_and_a_renewal_or_a_try_in_vain_one_that_writes_nothing() {
    let cluster = Cluster::one(&[]).await;
    let seen = || ["\"Txn\"", "\"LeaseGrant\""].map(|method| count(cluster.ports()[0], method));
    let [ours, others] = clients(&cluster.url()).await;
    // The first one also writes from where epochs are counted.
    take(&ours, "k", LEASE).await.release().await.unwrap();

    let [before, _] = seen();
    for _ in 0..TIMES {
        take(&ours, "k", LEASE).await.release().await.unwrap();
    }
    assert_eq!(seen()[0] - before, TIMES * 2);

    let guard = take(&ours, "k", LEASE).await;
    let [_, leases] = seen();
    // The first one also reads from where epochs are counted.
    assert!(others.try_lock("k").await.unwrap().is_none());
    let [before, _] = seen();
    for _ in 0..TIMES {
        guard.renew().await.unwrap();
        assert!(others.try_lock("k").await.unwrap().is_none());
    }
    // What writes has a lease first.
    assert_eq!(seen(), [before + TIMES * 2, leases]);
}
