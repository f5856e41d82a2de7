//! A server that is the replica of another. The tests start the servers they need; without `redis-server` they are
//! ignored.

use std::time::Duration;

use leasehold_redis_single::{ErrorKind, KIND, LockKey, LockOptions, Locker, LockerExt, RedisSingle, Result};
use leasehold_testkit::redis::{Recorder, Server};
use leasehold_testkit::{eventually, needs, test};
use tokio::time::timeout;

async fn replicate(replica: &Server, primary: &Server) {
    let follow = ["REPLICAOF", "127.0.0.1", &primary.port().to_string()];
    assert_eq!(replica.ask(&follow).await.text(), "OK");
    let in_step = async || replica.ask(&["INFO", "replication"]).await.text().contains("master_link_status:up");
    eventually("it is in step", in_step).await;
}

#[test]
async fn connecting_to_a_read_only_replica_names_its_primary() -> Result<()> {
    let primary = needs("redis-server", Server::start(&["--repl-diskless-sync-delay", "0"]).await);
    let replica = needs("redis-server", Server::start(&[]).await);
    replicate(&replica, &primary).await;
    for builder in [RedisSingle::builder(), RedisSingle::builder().confirm_replicas(1, Duration::from_secs(1))] {
        let error = builder.url(replica.url()).connect().await.unwrap_err();
        assert_eq!((error.kind(), error.is_transient()), (ErrorKind::Unavailable, true), "it may be promoted");
        let told = error.to_string();
        assert!(told.contains(&format!("{} is a read-only replica", replica.url())), "{told}");
        assert!(told.contains(&format!("connect to the primary, 127.0.0.1:{}", primary.port())), "{told}");
    }
    // But for whoever asks.
    let clients = async || replica.ask(&["CLIENT", "LIST", "TYPE", "normal"]).await.text().lines().count();
    eventually("nobody is connected", async || clients().await == 1).await;
    replica.ask(&["REPLICAOF", "NO", "ONE"]).await;
    assert!(RedisSingle::connect(&replica.url()).await?.try_lock("k").await?.is_some());
    Ok(())
}

#[test]
async fn a_replica_that_takes_writes_is_warned_of() -> Result<()> {
    let primary = needs("redis-server", Server::start(&["--repl-diskless-sync-delay", "0"]).await);
    let replica = needs("redis-server", Server::start(&["--replica-read-only", "no"]).await);
    replicate(&replica, &primary).await;
    let recorder = Recorder::start();
    assert!(RedisSingle::connect(&replica.url()).await?.try_lock("k").await?.is_some());
    assert!(recorder.recorded().contains("is a replica that takes writes"), "{}", recorder.recorded());
    let told = KIND.examine.unwrap()(&replica.url()).await?;
    assert!(told.iter().any(|told| told.text.contains("is a replica that takes writes")), "{told:?}");
    let recorder = Recorder::start();
    drop(RedisSingle::connect(&primary.url()).await?);
    assert!(!recorder.recorded().contains("is a replica"), "{}", recorder.recorded());
    Ok(())
}

#[test]
async fn a_hand_off_that_no_replica_has_is_in_doubt_and_is_given_back() -> Result<()> {
    let primary = needs("redis-server", Server::start(&["--repl-diskless-sync-delay", "0"]).await);
    let replica = needs("redis-server", Server::start(&[]).await);
    replicate(&replica, &primary).await;
    let locks = async || {
        let builder = RedisSingle::builder().confirm_replicas(1, Duration::from_millis(500));
        builder.url(primary.url()).connect().await
    };
    let (here, there) = (locks().await?, locks().await?);
    let handed = here.lock("k").await?.detach().unwrap();
    replica.pause();
    let error = there.attach(&handed, &LockOptions::new()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Indeterminate, "{error}");
    let is_free = async || primary.ask(&["EXISTS", "{leasehold:k}:lock"]).await.number() == 0;
    eventually("what was taken over is given back", is_free).await;
    replica.resume();
    let handed = here.lock("k").await?.detach().unwrap();
    assert!(there.attach(&handed, &LockOptions::new()).await?.is_some());
    Ok(())
}

/// As behind an address that the administrators move.
#[test]
async fn waits_go_on_while_a_server_is_a_replica_and_are_served_when_it_is_promoted() -> Result<()> {
    let other = needs("redis-server", Server::start(&["--repl-diskless-sync-delay", "0"]).await);
    let server = needs("redis-server", Server::start(&[]).await);
    let (here, there) = (RedisSingle::connect(&server.url()).await?, RedisSingle::connect(&server.url()).await?);
    let _held = there.lock("k").await?;
    let (before, key) = (server.calls("evalsha").await, LockKey::new("k")?);
    let mut waiting = tokio::spawn({
        let here = here.clone();
        async move { here.acquire(&key, &LockOptions::new()).await }
    });
    eventually("it waits", async || server.calls("evalsha").await > before).await;
    replicate(&server, &other).await;
    for _ in 0..3 {
        let error = here.try_lock("other").await.unwrap_err();
        assert!(error.is_transient(), "{error}");
    }
    let told =
        async || here.try_lock("other").await.is_err_and(|error| error.to_string().contains("read-only replica"));
    eventually("it says why", told).await;
    assert!(timeout(Duration::from_secs(2), &mut waiting).await.is_err(), "a wait ended");
    server.ask(&["REPLICAOF", "NO", "ONE"]).await;
    let guard = timeout(Duration::from_secs(60), waiting).await.expect("it is served").expect("no panic")?;
    assert!(guard.is_some());
    Ok(())
}
