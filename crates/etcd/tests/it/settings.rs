//! Users and rights, data that are lost, and what is written.

use std::time::Duration;

use futures::FutureExt;
use futures::future::join_all;
use leasehold_etcd::{
    Admin, Attempt, Backed, Backend, Claim, ErrorKind, Etcd, Health, KIND, LeaseStatus, LocalHandoff, LockerExt, Mode,
    Notification,
};
use leasehold_testkit::etcd::Cluster;
use leasehold_testkit::{PATIENCE, claim_each_for_two, eventually, readers_life, test, whole_life};

use crate::clients::{clients, count, key, leases, log_in, patient, take};

#[test(multi_thread, server)]
async fn a_user_needs_the_rights_that_the_readme_names_and_no_more() {
    let cluster = Cluster::one(&[]).await;
    let port = cluster.ports()[0];
    let url = |user: &str, namespace: &str| format!("etcd://{user}127.0.0.1:{port}/{namespace}?sslmode=disable");
    let refused = async |url: String| {
        let error = Etcd::connect(&url).await.map(drop).unwrap_err();
        assert_eq!((error.kind(), error.backend()), (ErrorKind::Backend, Some("etcd")), "{error:?}");
        assert!(!format!("{error} {error:?}").contains("hunter2"), "{error:?}");
        error.to_string()
    };
    assert!(refused(url("app:hunter2@", "billing")).await.contains("authentication is not enabled"));
    let readme = include_str!("../../README.md");
    let (_, block) = readme.split_once("```sh\n").unwrap();
    let commands = block.split_once("```").unwrap().0.replace("PASSWORD", "hunter2/");
    let commands = commands.lines().map(str::trim).filter(|command| !command.is_empty());
    for command in ["user add root:root", "user grant-role root root"].into_iter().chain(commands) {
        let arguments: Vec<_> = command.trim_start_matches("etcdctl ").split(' ').collect();
        cluster.control(&arguments).await.unwrap_or_else(|error| panic!("{command}: {error}"));
    }
    cluster.control(&["auth", "enable"]).await.unwrap();

    let [ours, theirs] = clients(&url("app:hunter2%2F@", "billing")).await;
    whole_life(&ours, &theirs, "k").await;
    readers_life(&ours, &theirs, "k").await;
    assert!(refused(url("app:hunter2%2F@", "other")).await.contains("lacks the rights"));
    assert!(refused(url("app:hunter2wrong@", "billing")).await.contains("check user and password"));
    assert!(refused(url("", "billing")).await.contains("wants a user"));
}

#[test(multi_thread, server)]
async fn what_the_builder_says_wins_over_the_url_and_what_comes_together_is_few_transactions() {
    let cluster = Cluster::one(&[]).await;
    let port = cluster.ports()[0];
    let [url, ours] =
        ["theirs", "ours"].map(|namespace| format!("etcd://127.0.0.1:{port}/{namespace}?sslmode=disable"));
    let other = Etcd::connect(&ours).await.unwrap();
    let mut sent = Vec::new();
    for (together, handoff) in [(true, LocalHandoff::new().age(Duration::from_secs(5))), (false, LocalHandoff::off())] {
        let builder = Etcd::builder().url(&url).namespace("ours").group_commit(together).local_handoff(handoff);
        let shown = format!("{builder:?}");
        assert!(shown.contains("ours") && shown.contains(&together.to_string()), "{shown}");
        let locks = builder.connect().await.unwrap();
        assert!(format!("{locks:?}").contains("127.0.0.1"), "{locks:?}");

        let held = locks.lock("k").await.unwrap();
        assert_eq!(other.inspect(&key("k")).await.unwrap().holders.len(), 1);
        let mut next = Box::pin(locks.lock("k"));
        assert!((&mut next).now_or_never().is_none());
        let before = held.fencing_token().unwrap().get();
        held.release().await.unwrap();
        let next = next.await.unwrap().fencing_token().unwrap().get();
        assert_eq!(next == before + 1, together, "{before} {next}");

        let (store, before) = (locks.engine().backend(), count(port, "Txn"));
        let granted = claim_each_for_two(store).await;
        let released = join_all(granted.iter().map(|grant| store.release(grant))).await;
        assert!(released.iter().all(|status| matches!(status, Ok(LeaseStatus::Held))), "{released:?}");
        sent.push(count(port, "Txn") - before);
    }
    assert!(sent[0] * 2 < sent[1], "transactions together, and each alone: {sent:?}");
}

#[test(multi_thread, server)]
async fn a_waiter_is_woken_although_the_history_was_compacted() {
    let cluster = Cluster::one(&[]).await;
    let [ours, theirs] = clients(&cluster.url()).await;
    let guard = theirs.lock("k").await.unwrap();
    let mut subscription = ours.engine().backend().notifications().unwrap().subscribe(&key("k")).await.unwrap();
    guard.release().await.unwrap();
    for _ in 0..3 {
        cluster.control(&["put", "other", "value"]).await.unwrap();
    }
    let written = cluster.control(&["get", "other", "--write-out=fields"]).await.unwrap();
    let revision = written.lines().find_map(|line| line.strip_prefix("\"Revision\" : ")).unwrap();
    cluster.control(&["compact", revision]).await.unwrap();
    // The watch begins only now, at a revision that is not kept any more.
    let told = tokio::time::timeout(PATIENCE, subscription.next()).await.expect("nothing was told");
    assert_eq!(told, Notification::Freed);
}

#[test(multi_thread, server)]
async fn a_history_that_nobody_compacts_is_found_and_the_cure_ends_it() {
    let cluster = Cluster::one(&[]).await;
    let url = cluster.url();
    let found = async || {
        let findings = (KIND.examine.unwrap())(&url).await.unwrap();
        findings.into_iter().find(|finding| finding.id == "history").unwrap()
    };
    // Each claim and each release is a revision.
    let backend = Etcd::builder().url(url.as_str()).group_commit(false).backend().await.unwrap();
    assert_eq!(found().await.health, Health::Well, "a young cluster has not compacted anything yet");
    join_all((0..100).map(async |number| {
        for _ in 0..55 {
            let claim = Claim::new(&key(&format!("k/{number}")), Mode::Exclusive, Duration::from_secs(60));
            backend.try_acquire(&claim).await.unwrap();
            backend.release(&claim.grant(None)).await.unwrap();
        }
    }))
    .await;
    let grown = found().await;
    assert_eq!(grown.health, Health::Warning, "{grown:?}");
    let cure = grown.cure.unwrap();
    let compact: Vec<_> = cure.split(';').next().unwrap().split(' ').skip(1).collect();
    cluster.control(&compact).await.unwrap();
    let cured = found().await;
    assert_eq!(cured.health, Health::Well, "{cured:?}");
}

#[test(multi_thread, server)]
async fn a_key_that_somebody_else_wrote_is_named() {
    let cluster = Cluster::one(&[]).await;
    let [ours, _] = clients(&cluster.url()).await;
    cluster.control(&["put", "leasehold/leasehold/held/k/w/odd", "value"]).await.unwrap();
    for error in [
        ours.try_lock("k").await.map(drop).unwrap_err(),
        ours.acquire(&key("k"), &patient()).await.map(drop).unwrap_err(),
        ours.inspect(&key("k")).await.map(drop).unwrap_err(),
        ours.list("", None).await.map(drop).unwrap_err(),
    ] {
        assert_eq!(error.kind(), ErrorKind::Backend, "{error:?}");
        assert!(error.to_string().contains("held/k/w/odd"), "{error}");
    }
    ours.lock("other").await.unwrap().release().await.unwrap();
}

/// As when somebody deleted what nobody should.
#[test(multi_thread, server)]
async fn a_namespace_whose_base_is_lost_gets_another() {
    let cluster = Cluster::one(&[]).await;
    let [ours, theirs] = clients(&cluster.url()).await;
    let lost = async || cluster.control(&["del", "leasehold/leasehold/base"]).await.unwrap();
    let claim = || Claim { waits: true, ..Claim::new(&key("k"), Mode::Exclusive, Duration::from_secs(60)) };
    for client in [&ours, &theirs] {
        lost().await;
        let (backend, claim) = (client.engine().backend(), claim());
        let granted = backend.try_acquire(&claim).await.unwrap();
        assert!(matches!(granted, Attempt::Granted { .. }), "{granted:?}");
        backend.release(&claim.grant(None)).await.unwrap();
    }
    lost().await;
    assert_eq!(ours.inspect(&key("k")).await.map(drop).unwrap_err().kind(), ErrorKind::Unavailable);
    assert!(ours.inspect(&key("k")).await.unwrap().holders.is_empty());
}

/// As when etcd ended them early: a grant does not need the lease that this process kept for it.
#[test(multi_thread, server)]
async fn claims_that_come_together_are_granted_although_a_lease_of_one_was_revoked() {
    const CLAIMS: usize = 8;
    let cluster = Cluster::one(&[]).await;
    let [ours, _] = clients(&cluster.url()).await;
    let backend = ours.engine().backend();
    let claims: Vec<_> = (0..CLAIMS)
        .map(|number| Claim::new(&key(&format!("k/{number}")), Mode::Exclusive, Duration::from_secs(600)))
        .collect();
    for _ in 0..3 {
        let granted = join_all(claims.iter().map(|claim| backend.try_acquire(claim))).await;
        assert!(granted.iter().all(|granted| matches!(granted, Ok(Attempt::Granted { .. }))), "{granted:?}");
        join_all(claims.iter().map(async |claim| backend.release(&claim.grant(None)).await)).await;
        let all = leases(&cluster).await;
        for lease in all.iter().take(CLAIMS / 2) {
            // Some have been given back by now.
            let _ = cluster.control(&["lease", "revoke", lease]).await;
        }
    }
}

#[test(multi_thread, server)]
async fn a_locker_that_is_closed_leaves_no_leases() {
    let cluster = Cluster::one(&[]).await;
    let [ours, _] = clients(&cluster.url()).await;
    take(&ours, "k", Duration::from_secs(3600)).await.release().await.unwrap();
    ours.close().await;
    assert_eq!(leases(&cluster).await, [""; 0]);
}

#[test(multi_thread, server)]
async fn what_examines_a_namespace_writes_nothing() {
    let cluster = Cluster::one(&[]).await;
    (KIND.examine.unwrap())(&cluster.url()).await.unwrap();
    assert_eq!(cluster.control(&["get", "leasehold/", "--prefix"]).await.unwrap(), "");
}

#[test(multi_thread, server)]
async fn no_leases_are_left_of_claims_that_are_refused() {
    let cluster = Cluster::one(&[]).await;
    let url = format!("127.0.0.1:{}/billing", cluster.ports()[0]);
    Etcd::connect(&format!("etcd://{url}")).await.unwrap().close().await;
    log_in(&cluster, "reader:reader", "read", "leasehold/billing/").await.unwrap();
    let ours = Etcd::connect(&format!("etcd://reader:reader@{url}?sslmode=disable")).await.unwrap();
    for _ in 0..5 {
        let error = ours.acquire(&key("k"), &patient().ttl(Duration::from_secs(3600))).await.map(drop).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Backend, "{error:?}");
    }
    eventually("they are given back", async || {
        let leases = cluster.control(&["--user=root:root", "lease", "list"]).await;
        leases.is_ok_and(|leases| leases.contains("found 0 leases"))
    })
    .await;
}
