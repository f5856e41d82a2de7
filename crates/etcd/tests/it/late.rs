//! Requests that come later than others that were sent after them.

use std::time::Duration;

use futures::future::join_all;
use leasehold_etcd::{
    Attempt, Backed, Backend, Claim, ErrorKind, Etcd, EtcdBackend, FencingToken, GrantRef, LeaseStatus, Mode, OwnerId,
    Renewal, Result,
};
use leasehold_testkit::etcd::Cluster;
use leasehold_testkit::{PATIENCE, eventually, test};

use crate::clients::{behind_a_proxy, clients, count, key, leases};

async fn granted(backend: &EtcdBackend, name: &str, mode: Mode, ttl: Duration) -> GrantRef {
    let claim = Claim::new(&key(name), mode, ttl);
    backend.try_acquire(&claim).await.unwrap();
    claim.grant(None)
}

async fn renew(backend: &EtcdBackend, grant: &GrantRef, ttl: Duration) -> Result<LeaseStatus> {
    let renewal = Renewal { grant: grant.clone(), ttl };
    backend.renew(&[renewal], PATIENCE).await.remove(0)
}

/// By which revision the only entry was written.
async fn written(cluster: &Cluster) -> Option<String> {
    let fields =
        cluster.control(&["get", "leasehold/leasehold/held/k/w/", "--prefix", "--write-out=fields"]).await.unwrap();
    fields.lines().find_map(|line| line.strip_prefix("\"ModRevision\" : ")).map(str::to_owned)
}

/// As when a waiter of the same process that asked for a longer lease gets the lock handed over, and hands it on: its renewal
/// was given up, and could still replace the lease that the next one keeps alive by one that ends before it.
#[test(multi_thread, server)]
async fn a_renewal_that_was_given_up_replaces_no_lease_once_a_later_one_was_answered() {
    const SHORT: Duration = Duration::from_secs(600);
    const LONGER: Duration = Duration::from_secs(601);
    let (cluster, proxy, ours) = behind_a_proxy().await;
    let port = cluster.ports()[0];
    let backend = ours.engine().backend();
    let was_given_up = async || {
        proxy.delay(Duration::ZERO);
        let grant = granted(backend, "k", Mode::Exclusive, SHORT).await;
        let first = written(&cluster).await;
        proxy.delay(Duration::from_millis(200));
        let leases = count(port, "\"LeaseGrant\"");
        let renewed = tokio::spawn({
            let (backend, grant) = (backend.clone(), grant.clone());
            async move { renew(&backend, &grant, LONGER).await }
        });
        // While the answer is on its way, before the transaction that needs it.
        eventually("it has a new lease", async || count(port, "\"LeaseGrant\"") > leases).await;
        proxy.hold_requests();
        let outcome = renewed.await.unwrap();
        proxy.delay(Duration::ZERO);
        // Else it was too slow, and the transaction was answered, or never sent.
        let is_unknown = outcome.is_err_and(|error| error.kind() == ErrorKind::Indeterminate);
        if is_unknown {
            assert_eq!(renew(backend, &grant, SHORT).await.unwrap(), LeaseStatus::Held);
            let second = written(&cluster).await;
            assert!(first.is_some() && second.is_some());
            assert_ne!(second, first, "the entry is still what the transaction compares that is on its way");
            // From here on it is as before: its lease is kept alive, and nothing is written.
            assert_eq!(renew(backend, &grant, SHORT).await.unwrap(), LeaseStatus::Held);
            assert_eq!(written(&cluster).await, second);
        }
        backend.release(&grant).await.unwrap();
        is_unknown
    };
    eventually("a renewal was given up", was_given_up).await;
}

#[test(multi_thread, server)]
async fn a_forced_release_in_two_rounds_names_all() {
    const LEASE: Duration = Duration::from_secs(600);
    const READERS: usize = 50;
    let (cluster, proxy, ours) = behind_a_proxy().await;
    let theirs = Etcd::connect(&cluster.url()).await.unwrap();
    let backend = theirs.engine().backend();
    let in_two_rounds = async || {
        let name = format!("readers-{}", OwnerId::random().to_hex());
        let readers = join_all((0..READERS).map(|_| granted(backend, &name, Mode::Shared, LEASE))).await;
        let held = backend.inspect(&key(&name)).await.unwrap();
        assert_eq!(held.holders.len(), READERS);
        proxy.delay(Duration::from_millis(200));
        let released = tokio::spawn({
            let (ours, key) = (ours.clone(), key(&name));
            async move { ours.engine().backend().force_release(&key, None).await }
        });
        let prefix = format!("leasehold/leasehold/forced/{name}/");
        eventually("some are released", async || {
            !cluster.control(&["get", &prefix, "--prefix", "--keys-only"]).await.unwrap().is_empty()
        })
        .await;
        // A longer lease changes the entry.
        let changed = join_all(readers.iter().map(|grant| renew(backend, grant, LEASE * 2))).await;
        let changed = changed.iter().filter(|status| matches!(status, Ok(LeaseStatus::Held))).count();
        proxy.delay(Duration::ZERO);
        let was = released.await.unwrap();
        let Ok(was) = was else { return false };
        let tokens = |holders: &[leasehold_etcd::Holder]| {
            let mut tokens: Vec<_> = holders.iter().filter_map(|holder| holder.token.map(FencingToken::get)).collect();
            tokens.sort_unstable();
            tokens
        };
        assert_eq!(tokens(&was.holders), tokens(&held.holders), "{changed} were changed meanwhile");
        assert!(backend.inspect(&key(&name)).await.unwrap().holders.is_empty());
        changed > 0
    };
    eventually("some were changed between the rounds", in_two_rounds).await;
}

/// As after an answer that was lost.
#[test(multi_thread, server)]
async fn a_claim_that_is_sent_again_has_its_lease_from_then_on() {
    const LEASE: Duration = Duration::from_secs(600);
    let cluster = Cluster::one(&[]).await;
    let [ours, _] = clients(&cluster.url()).await;
    let backend = ours.engine().backend();
    let claim = Claim { waits: true, ..Claim::new(&key("k"), Mode::Exclusive, LEASE) };
    backend.try_acquire(&claim).await.unwrap();
    eventually("some of the lease is over", async || left(&cluster).await < LEASE.as_secs()).await;
    let again = backend.try_acquire(&claim).await.unwrap();
    assert!(matches!(again, Attempt::Granted { .. }), "{again:?}");
    assert!(left(&cluster).await >= LEASE.as_secs());
}

/// What is left of the only lease that an entry has, in whole seconds, rounded down.
async fn left(cluster: &Cluster) -> u64 {
    let fields =
        cluster.control(&["get", "leasehold/leasehold/held/", "--prefix", "--write-out=fields"]).await.unwrap();
    let lease: i64 =
        fields.lines().find_map(|line| line.strip_prefix("\"Lease\" : ")).and_then(|lease| lease.parse().ok()).unwrap();
    let left = cluster.control(&["lease", "timetolive", &format!("{lease:x}")]).await.unwrap();
    left.split("remaining(").nth(1).and_then(|left| left.split('s').next()?.parse().ok()).unwrap()
}

#[test(multi_thread, server)]
async fn a_renewal_for_less_leaves_no_less_than_that() {
    const LONG: Duration = Duration::from_secs(6);
    const SHORT: Duration = Duration::from_secs(5);
    let cluster = Cluster::one(&[]).await;
    let [ours, _] = clients(&cluster.url()).await;
    let held = granted(ours.engine().backend(), "k", Mode::Exclusive, LONG).await;
    eventually("less is left", async || left(&cluster).await < SHORT.as_secs() - 1).await;
    assert_eq!(renew(ours.engine().backend(), &held, SHORT).await.unwrap(), LeaseStatus::Held);
    let (first, shorter) = (written(&cluster).await, left(&cluster).await);
    assert!(shorter >= SHORT.as_secs(), "{shorter}");
    // What is left is more than is asked for: nothing is written.
    assert_eq!(renew(ours.engine().backend(), &held, Duration::from_secs(2)).await.unwrap(), LeaseStatus::Held);
    assert_eq!(written(&cluster).await, first);
}

#[test(multi_thread, server)]
async fn a_renewal_by_another_process_writes_nothing_either() {
    const LEASE: Duration = Duration::from_secs(600);
    let cluster = Cluster::one(&[]).await;
    let [ours, theirs] = clients(&cluster.url()).await;
    let held = granted(ours.engine().backend(), "k", Mode::Exclusive, LEASE).await;
    let first = written(&cluster).await;
    assert_eq!(renew(theirs.engine().backend(), &held, LEASE).await.unwrap(), LeaseStatus::Held);
    assert_eq!(written(&cluster).await, first);
}

/// Between the two requests that a renewal is.
#[test(multi_thread, server)]
async fn a_lease_that_ends_while_it_is_renewed_is_not_held() {
    const LEASE: Duration = Duration::from_secs(600);
    let (cluster, proxy, ours) = behind_a_proxy().await;
    let port = cluster.ports()[0];
    let backend = ours.engine().backend();
    let ended_between = async || {
        proxy.delay(Duration::ZERO);
        let held = granted(backend, "k", Mode::Exclusive, LEASE).await;
        let before = count(port, "\"Txn\"");
        proxy.delay(Duration::from_millis(200));
        let renewed = tokio::spawn({
            let (backend, held) = (backend.clone(), held.clone());
            async move { renew(&backend, &held, LEASE).await }
        });
        eventually("the entry is read", async || count(port, "\"Txn\"") > before).await;
        for lease in leases(&cluster).await {
            cluster.control(&["lease", "revoke", &lease]).await.unwrap();
        }
        let outcome = renewed.await.unwrap();
        proxy.delay(Duration::ZERO);
        backend.release(&held).await.unwrap();
        // Else the machine was too slow, and the renewal was over before.
        outcome.unwrap() == LeaseStatus::NotHeld
    };
    eventually("a lease ended between", ended_between).await;
}

/// It may have been carried out: to ask again, and to find nothing, would say that the lock was lost before.
#[test(multi_thread, server)]
async fn releases_that_go_together_are_not_asked_again_when_their_answer_is_lost() {
    const LEASE: Duration = Duration::from_secs(600);
    let (cluster, proxy, ours) = behind_a_proxy().await;
    let port = cluster.ports()[0];
    let backend = ours.engine().backend();
    let answer_is_lost = async || {
        proxy.delay(Duration::ZERO);
        let name = |number| format!("k/{number}/{}", OwnerId::random().to_hex());
        let held = join_all((0..8).map(async |number| granted(backend, &name(number), Mode::Exclusive, LEASE).await));
        let (held, before) = (held.await, count(port, "\"Txn\""));
        proxy.delay(Duration::from_millis(100));
        let released = tokio::spawn({
            let backend = backend.clone();
            async move { join_all(held.iter().map(|grant| backend.release(grant))).await }
        });
        // The first goes alone, and the others as soon as it is answered.
        eventually("all are sent", async || count(port, "\"Txn\"") >= before + 2).await;
        proxy.cut();
        let released = released.await.unwrap();
        assert!(!released.iter().any(|status| matches!(status, Ok(LeaseStatus::NotHeld))), "{released:?}");
        released.iter().any(|status| status.as_ref().is_err_and(|error| error.kind() == ErrorKind::Indeterminate))
    };
    eventually("an answer was lost", answer_is_lost).await;
}
