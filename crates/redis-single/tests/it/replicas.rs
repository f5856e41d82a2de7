//! A server that is the replica of another. The tests start the servers they need; without `redis-server` they are
//! ignored.

use std::time::Duration;

use leasehold_redis_single::{ErrorKind, KIND, LockOptions, Locker, LockerExt, RedisSingle, Result};
use leasehold_testkit::redis::{Recorder, Server};
use leasehold_testkit::{eventually, needs, test};

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
