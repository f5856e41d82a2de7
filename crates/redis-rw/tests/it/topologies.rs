//! Beside a single server: a Cluster, and a primary behind Sentinels.

use std::time::Duration;

use leasehold_redis_rw::{Admin, KIND, LockKey, LockOptions, LockerExt, RedisRw, Result, RwLockerExt, Target, Wait};
use leasehold_testkit::redis::{FakeRedis, Sentinels};
use leasehold_testkit::{eventually, needs, test};

fn patiently() -> LockOptions {
    LockOptions::new().ttl(Duration::from_secs(60)).wait(Wait::UpTo(Duration::from_secs(60)))
}

#[test]
async fn a_grant_from_the_queue_counts_when_replicas_have_it() -> Result<()> {
    let set = needs("redis-server", Sentinels::start().await);
    let connect =
        || RedisRw::builder().url(set.primary.url()).confirm_replicas(1, Duration::from_millis(300)).connect();
    let (here, there) = (connect().await?, connect().await?);
    let key = LockKey::new("k")?;
    let written = here.acquire(&key, &patiently()).await?.unwrap();
    let waiting = tokio::spawn(async move { there.acquire_read(&key, &patiently()).await });
    let has_a_place = async || set.primary.ask(&["EXISTS", "{leasehold:k}:queue"]).await.number() == 1;
    eventually("the reader has a place", has_a_place).await;
    set.replicas[0].pause();
    let waits = set.primary.calls("wait").await;
    // Given to the reader in the primary alone.
    let _ = written.release().await?;
    let asked_twice = async || set.primary.calls("wait").await >= waits + 2;
    eventually("the replica is asked, and asked again", asked_twice).await;
    assert!(!waiting.is_finished(), "a grant that no replica has");
    set.replicas[0].resume();
    assert!(waiting.await.unwrap()?.is_some());
    Ok(())
}

#[test]
async fn the_scheme_stands_for_one_server_or_before_the_url_of_any() -> Result<()> {
    for (url, why) in [
        ("redis-rw://h?odd", "`odd` is no query parameter of redis://"),
        ("rediss-rw://h?odd", "`odd` is no query parameter of rediss://"),
        ("redis-rw:redis-sentinel://h?odd", "`odd` is no query parameter of redis-sentinel://"),
        ("redis-rw:rediss-cluster://h?odd", "`odd` is no query parameter of rediss-cluster://"),
        ("rediss-rw:redis://h", "unknown scheme `rediss-rw`"),
        ("redis-rw", "the URL cannot be read"),
    ] {
        let (connected, examined) = ((KIND.connect)(Target::new(url)).await, KIND.examine.unwrap()(url).await);
        for refused in [connected.map(drop).unwrap_err(), examined.map(drop).unwrap_err()] {
            assert!(refused.to_string().contains(why), "{url}: {refused}");
        }
    }
    // And all that follows it stays as it is.
    let server = FakeRedis::start(|_| None::<String>).await;
    let url = format!("redis-rw://:pw@127.0.0.1:{}/2?namespace=a", server.port());
    let locks = (KIND.connect)(Target::new(&url)).await?;
    drop(locks.inspect(&LockKey::new("k")?).await);
    let received = server.received();
    for asked in ["AUTH pw", "SELECT 2", "{a:k}:lock"] {
        assert!(received.iter().any(|words| words.join(" ").contains(asked)), "{asked}: {received:?}");
    }
    Ok(())
}
