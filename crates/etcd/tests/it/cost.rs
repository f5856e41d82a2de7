//! What a lock costs the server: a way that needs fewer requests is one that nothing else would miss.

use std::time::Duration;

use futures::future::join_all;
use leasehold_etcd::{Attempt, Backed, Backend, Claim, FencingToken, LeaseStatus, LockerExt, Mode, Renewal};
use leasehold_testkit::etcd::Cluster;
use leasehold_testkit::{PATIENCE, test};

use crate::clients::{clients, count, key, metric, take};

const LEASE: Duration = Duration::from_secs(600);
const TIMES: u64 = 20;

/// Transactions, requests for a new lease, and what was written to the disks of a majority.
fn seen(cluster: &Cluster) -> [u64; 3] {
    let port = cluster.ports()[0];
    let written = metric(port, |line| line.starts_with("etcd_server_proposals_committed_total"));
    [count(port, "\"Txn\""), count(port, "\"LeaseGrant\""), written]
}

#[test(multi_thread, server)]
async fn a_lock_is_two_transactions_and_a_renewal_or_a_try_in_vain_one_that_writes_nothing() {
    let cluster = Cluster::one(&[]).await;
    let [ours, others] = clients(&cluster.url()).await;
    // The first one also writes from where epochs are counted.
    take(&ours, "k", LEASE).await.release().await.unwrap();

    let [before, leases, _] = seen(&cluster);
    for _ in 0..TIMES {
        take(&ours, "k", LEASE).await.release().await.unwrap();
    }
    let guard = take(&ours, "k", LEASE).await;
    // Longer than a lease can be given to another grant without a word to the server.
    tokio::time::sleep(Duration::from_millis(1_100)).await;
    guard.release().await.unwrap();
    let guard = take(&ours, "k", LEASE).await;
    assert_eq!(seen(&cluster)[..2], [before + TIMES * 2 + 3, leases]);

    // The first one also reads from where epochs are counted.
    assert!(others.try_lock("k").await.unwrap().is_none());
    let [before, leases, written] = seen(&cluster);
    for _ in 0..TIMES {
        guard.renew().await.unwrap();
        assert!(others.try_lock("k").await.unwrap().is_none());
    }
    assert_eq!(seen(&cluster), [before + TIMES * 2, leases, written]);
}

#[test(multi_thread, server)]
async fn who_waits_asks_again_in_time_and_with_one_transaction_that_writes_nothing() {
    let cluster = Cluster::one(&[]).await;
    let [ours, others] = clients(&cluster.url()).await;
    let guard = take(&ours, "k", LEASE).await;
    let claim = Claim { waits: true, ..Claim::new(&key("k"), Mode::Exclusive, LEASE) };
    let queued = async || {
        let attempt = others.engine().backend().try_acquire(&claim).await.unwrap();
        let Attempt::Queued { epoch_of_holder, retry_in, lease, .. } = attempt else { panic!("{attempt:?}") };
        assert_eq!(epoch_of_holder, guard.fencing_token().map(FencingToken::epoch));
        // Its place is under a lease of this length.
        assert!(retry_in * 2 < lease, "{retry_in:?} of {lease:?}");
    };
    queued().await;
    let [before, leases, written] = seen(&cluster);
    for _ in 0..TIMES {
        queued().await;
    }
    assert_eq!(seen(&cluster), [before + TIMES, leases, written]);
    assert_eq!(ours.engine().backend().inspect(&key("k")).await.unwrap().waiters, Some(1));
}

#[test(multi_thread, server)]
async fn what_is_renewed_together_is_one_transaction() {
    let cluster = Cluster::one(&[]).await;
    let [ours, _] = clients(&cluster.url()).await;
    let backend = ours.engine().backend();
    let together = backend.renewal_batch();
    assert!(together >= 10, "{together}");
    let claims: Vec<_> =
        (0..together).map(|number| Claim::new(&key(&format!("k/{number}")), Mode::Exclusive, LEASE)).collect();
    for granted in join_all(claims.iter().map(|claim| backend.try_acquire(claim))).await {
        assert!(matches!(granted, Ok(Attempt::Granted { .. })), "{granted:?}");
    }
    let renewals: Vec<_> = claims.iter().map(|claim| Renewal { grant: claim.grant(None), ttl: LEASE }).collect();
    let before = seen(&cluster);
    for renewed in backend.renew(&renewals, PATIENCE).await {
        assert_eq!(renewed.unwrap(), LeaseStatus::Held);
    }
    assert_eq!(seen(&cluster), [before[0] + 1, before[1], before[2]]);
}
