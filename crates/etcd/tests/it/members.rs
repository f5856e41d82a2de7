//! Members that die, lose their office, or cannot be reached.

use std::time::Duration;

use leasehold_etcd::{Admin, ErrorKind, Etcd, LockGuard, LockerExt, RwLockerExt, Wait};
use leasehold_testkit::etcd::Cluster;
use leasehold_testkit::{Proxy, eventually, test};

use crate::clients::{clients, key, patient, take};

/// Long enough for an election on a busy machine, and short enough to wait for its end.
const TTL: Duration = Duration::from_secs(15);

/// That held locks were renewed for longer than a lease, that they exclude others, and that tokens grow across their release.
async fn are_kept(held: Vec<LockGuard>, theirs: &Etcd) {
    tokio::time::sleep(TTL + Duration::from_secs(2)).await;
    for guard in held {
        assert!(guard.is_held(), "{:?} is lost: {:?}", guard.key(), guard.loss());
        let name = guard.key().as_str().to_owned();
        eventually("somebody answers", async || theirs.inspect(guard.key()).await.is_ok()).await;
        assert!(theirs.try_lock(name.as_str()).await.unwrap().is_none(), "{name} was granted twice");
        let before = guard.fencing_token();
        guard.release().await.unwrap();
        let next = take(theirs, &name, TTL).await;
        assert!(next.fencing_token() > before, "{:?} after {before:?}", next.fencing_token());
    }
}

#[test(multi_thread, server)]
async fn locks_outlive_the_death_of_the_leader() {
    let mut cluster = Cluster::three().await;
    let [ours, theirs] = clients(&cluster.url()).await;
    let mut held = Vec::new();
    for number in 0..10 {
        held.push(take(&ours, &format!("held/{number}"), TTL).await);
    }
    let leader = cluster.leader().await;
    cluster.member(leader).kill();
    let reader = theirs.read("others").await.unwrap();
    eventually("a lock is renewed", async || held[0].renew().await.is_ok()).await;
    are_kept(held, &theirs).await;
    reader.release().await.unwrap();
    // The one that was dead learns what it missed.
    cluster.restart(leader).unwrap();
    let survivor = take(&ours, "survivor", TTL).await;
    eventually("all are back", async || cluster.control(&["endpoint", "health"]).await.is_ok()).await;
    cluster.member((leader + 1) % 3).kill();
    eventually("it is seen", async || theirs.inspect(&key("survivor")).await.is_ok_and(|seen| seen.holders.len() == 1))
        .await;
    assert!(theirs.try_lock("survivor").await.is_ok_and(|got| got.is_none()));
    drop(survivor);
}

#[test(multi_thread, server)]
async fn locks_outlive_a_leader_that_moves() {
    let cluster = Cluster::three().await;
    let [ours, theirs] = clients(&cluster.url()).await;
    let held = vec![take(&ours, "held", TTL).await];
    let wanted = take(&ours, "wanted", TTL).await;
    let before = wanted.fencing_token();
    let waiter = tokio::spawn(async move { take(&theirs, "wanted", TTL).await });
    let has_a_waiter = async || {
        cluster
            .control(&["get", "leasehold/leasehold/held/wanted/", "--prefix", "--keys-only"])
            .await
            .is_ok_and(|keys| keys.matches("/w/").count() == 2)
    };
    eventually("the waiter is in the line", has_a_waiter).await;
    for _ in 0..2 {
        let leader = cluster.move_leader().await.unwrap();
        assert_eq!(cluster.leader().await, leader, "the office was not handed over");
    }
    wanted.release().await.unwrap();
    let next = waiter.await.unwrap();
    assert!(next.fencing_token() > before);
    let other = Etcd::connect(&cluster.url()).await.unwrap();
    are_kept(held, &other).await;
}

#[test(multi_thread, server)]
async fn a_client_that_is_cut_off_from_one_server_asks_another() {
    let cluster = Cluster::three().await;
    let proxies: Vec<_> = cluster.ports().into_iter().map(Proxy::start).collect();
    let hosts: Vec<_> = proxies.iter().map(|proxy| format!("127.0.0.1:{}", proxy.port())).collect();
    let ours = Etcd::connect(&format!("etcd://{}", hosts.join(","))).await.unwrap();
    let guard = take(&ours, "held", TTL).await;
    for (number, proxy) in proxies.iter().enumerate() {
        proxy.black_hole_all();
        eventually("it is renewed", async || guard.renew().await.is_ok()).await;
        ours.acquire(&key(&format!("own/{number}")), &patient()).await.unwrap().unwrap().release().await.unwrap();
        proxy.heal();
    }
    for (number, proxy) in proxies.iter().enumerate() {
        proxy.refuse(true);
        proxy.cut();
        // A connection that is refused is known not to have been used: even a single try finds the next server.
        eventually("a try is answered", async || ours.try_lock(format!("try/{number}").as_str()).await.is_ok()).await;
        proxy.refuse(false);
    }
    assert!(guard.is_held(), "{:?}", guard.loss());
}

#[test(multi_thread, server)]
async fn without_a_majority_the_error_says_so_and_comes_in_time() {
    let mut cluster = Cluster::three().await;
    let [ours, theirs] = clients(&cluster.url()).await;
    let held = take(&ours, "held", Duration::from_secs(600)).await;
    cluster.member(0).kill();
    cluster.member(1).kill();
    eventually("the member that is left has noticed", async || {
        let error = Etcd::connect(&cluster.url()).await.map(drop).unwrap_err();
        assert!(error.is_transient(), "{error:?}");
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{error:?}");
        error.to_string().contains("no majority")
    })
    .await;
    let error = theirs.try_lock("other").await.map(drop).unwrap_err();
    assert!(error.is_transient(), "{error:?}");
    let error = held.renew().await.unwrap_err();
    assert!(error.is_transient(), "{error:?}");
    let waiting = patient().wait(Wait::UpTo(Duration::from_secs(2)));
    let outcome = tokio::time::timeout(Duration::from_secs(60), theirs.acquire(&key("other"), &waiting)).await;
    let error = outcome.expect("a wait of 2 s goes on after a minute").map(drop).unwrap_err();
    assert!(error.is_transient(), "{error:?}");
    for number in 0..2 {
        cluster.restart(number).unwrap();
    }
    eventually("both clients are answered", async || {
        theirs.inspect(&key("held")).await.is_ok() && held.renew().await.is_ok()
    })
    .await;
    assert!(theirs.try_lock("held").await.unwrap().is_none(), "a held lock was forgotten");
    assert!(held.is_held());
    held.release().await.unwrap();
    take(&theirs, "held", TTL).await.release().await.unwrap();
}
