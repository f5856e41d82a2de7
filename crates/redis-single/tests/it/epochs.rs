//! Epochs: numbers that a server which forgets does not give again.

use leasehold_core::{Attempt, Backend, Claim, FencingToken};
use leasehold_redis_single::{LockerExt, RedisSingle, Result};
use leasehold_testkit::redis::Server;
use leasehold_testkit::{eventually, needs, test};

use crate::waiters::{FENCE, claim, clock, listening, locker, places};

/// A key in the hash slot of `k`.
const LIKE_K: &str = "like-k/168527";

#[test]
async fn a_counter_that_is_ahead_of_the_clock_waits_for_it_unless_the_clock_was_set_back() -> Result<()> {
    let server = needs("redis-server", Server::start(&[]).await);
    let store = listening(&server).await?;
    let ahead = clock(&server).await + 12_000;
    server.ask(&["SET", FENCE, &format!("epoch {ahead}")]).await;
    let attempt = store.try_acquire(&Claim { waits: false, ..claim() }).await?;
    assert_eq!(attempt, Attempt::AHEAD_OF_THE_CLOCK);
    let kept = server.ask(&["GET", FENCE]).await.text().to_owned();
    assert_eq!((kept, server.ask(&["DBSIZE"]).await.number()), (format!("epoch {ahead}"), 1));
    let locks = RedisSingle::from(store);
    let guard = locks.lock("k").await?;
    let epoch = guard.fencing_token().unwrap().epoch();
    assert!(epoch > ahead && epoch <= clock(&server).await + FencingToken::MOST_AHEAD, "{epoch} after {ahead}");
    guard.release().await.map(drop)?;
    let far = clock(&server).await + 3_600_000;
    server.ask(&["SET", FENCE, &format!("epoch {far}")]).await;
    assert_eq!(locks.try_lock("k").await?.unwrap().fencing_token().unwrap().epoch(), far + 1);
    Ok(())
}

#[test]
async fn a_waiter_whose_turn_comes_before_there_is_an_epoch_has_the_key_as_soon_as_there_is_one() -> Result<()> {
    let server = needs("redis-server", Server::start(&[]).await);
    let (here, there) = (locker(&server).await?, locker(&server).await?);
    let held = here.lock("k").await?;
    let waiting = tokio::spawn(async move { there.lock("k").await });
    eventually("it has a place", async || places(&server).await == 1).await;
    server.ask(&["SET", FENCE, &format!("epoch {}", clock(&server).await + 4_000)]).await;
    held.release().await.map(drop)?;
    assert!(waiting.await.unwrap()?.is_held());
    Ok(())
}

/// A clock that is set back would otherwise give tokens again, which only the counter prevents.
#[test]
async fn all_keys_of_a_slot_draw_from_one_counter_that_stays_and_grows_with_each_grant() -> Result<()> {
    let server = needs("redis-server", Server::start(&[]).await);
    let locks = locker(&server).await?;
    let mut before = None;
    for key in ["k", LIKE_K].repeat(3) {
        let guard = locks.lock(key).await?;
        let epoch = guard.fencing_token().map(FencingToken::epoch);
        assert!(epoch > before, "{key}: {epoch:?} after {before:?}");
        assert_eq!(server.ask(&["GET", FENCE]).await.text(), format!("epoch {}", epoch.unwrap()));
        guard.release().await.map(drop)?;
        before = epoch;
    }
    assert_eq!(server.ask(&["PTTL", FENCE]).await.number(), -1, "it would be forgotten");
    assert_eq!(server.ask(&["DBSIZE"]).await.number(), 1, "a key that nobody holds takes no memory");
    Ok(())
}
