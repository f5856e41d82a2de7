//! Who waits for one key, seen from the server.

use std::time::Duration;

use leasehold_core::{Attempt, Backend, Claim, LeaseStatus};
use leasehold_redis_single::{LocalHandoff, LockKey, Mode, RedisSingle, RedisSingleBackend, Result};
use leasehold_testkit::redis::{Answer, Server};

pub(crate) const LOCK: &str = "{leasehold:k}:lock";
pub(crate) const FENCE: &str = "{leasehold:afmc}:epoch";
pub(crate) const LINE: &str = "{leasehold:k}:queue";

pub(crate) fn key() -> LockKey {
    LockKey::new("k").expect("a key")
}

pub(crate) async fn locker(server: &Server) -> Result<RedisSingle> {
    locker_at(&server.url()).await
}

pub(crate) async fn locker_at(url: &str) -> Result<RedisSingle> {
    RedisSingle::builder().url(url).local_handoff(LocalHandoff::off()).connect().await
}

/// A store whose inbox is open.
pub(crate) async fn listening(server: &Server) -> Result<RedisSingleBackend> {
    let store = RedisSingle::builder().url(server.url()).backend().await?;
    drop(store.notifications().expect("signals").subscribe(&key()).await?);
    Ok(store)
}

pub(crate) fn claim() -> Claim {
    Claim { waits: true, ..Claim::new(&key(), Mode::Exclusive, Duration::from_secs(3600)) }
}

pub(crate) async fn holds(store: &RedisSingleBackend) -> Result<Claim> {
    let holder = claim();
    assert!(matches!(store.try_acquire(&holder).await?, Attempt::Granted { .. }));
    Ok(holder)
}

pub(crate) async fn takes_a_place(store: &RedisSingleBackend) -> Result<Claim> {
    let claim = claim();
    let attempt = store.try_acquire(&claim).await?;
    assert!(matches!(attempt, Attempt::Queued { .. }), "{attempt:?}");
    Ok(claim)
}

/// What it gives back: the key if it holds it, else its place.
pub(crate) async fn leaves(store: &RedisSingleBackend, claim: &Claim) -> Result<LeaseStatus> {
    store.release(&claim.grant(None)).await
}

/// Whether it is this claim that has the key now.
pub(crate) async fn has_it(server: &Server, claim: &Claim) -> bool {
    server.ask(&["GET", LOCK]).await.text().starts_with(&claim.owner.to_hex())
}

pub(crate) async fn places(server: &Server) -> usize {
    match server.ask(&["HKEYS", LINE]).await {
        Answer::List(fields) => fields.iter().filter(|field| field.text().len() == 32).count(),
        other => panic!("{other:?}"),
    }
}

/// Overwrites a word of the places whose owner begins so.
pub(crate) async fn rewrite(server: &Server, owner: &str, word: usize, text: &str) {
    let Answer::List(fields) = server.ask(&["HKEYS", LINE]).await else { panic!("no line") };
    let fields = fields.iter().map(Answer::text).filter(|field| field.len() == 32);
    for owner in fields.filter(|field| field.starts_with(owner)) {
        let place = server.ask(&["HGET", LINE, owner]).await;
        let mut words: Vec<&str> = place.text().split(' ').collect();
        words[word] = text;
        server.ask(&["HSET", LINE, owner, &words.join(" ")]).await;
    }
}

/// The server's clock as epochs count.
pub(crate) async fn clock(server: &Server) -> u64 {
    let Answer::List(time) = server.ask(&["TIME"]).await else { panic!("no time") };
    let [seconds, micros] = [0, 1].map(|part: usize| time[part].text().parse::<u64>().expect("a number"));
    seconds * 16_000 + micros * 2 / 125
}
