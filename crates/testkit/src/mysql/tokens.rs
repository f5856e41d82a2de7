//! What tokens do when the server forgets, and when its clock is behind them.

use std::time::Duration;

use leasehold_core::{Attempt, Backend, Capability, Claim, LockKey, LockerExt, Mode};

use super::server::Server;
use super::steps::{migrated, store};
use super::subject::Subject;

/// Sets the epoch of the only key so far ahead of the server's clock, and answers it.
async fn set_ahead<S: Subject>(server: &Server, ahead: Duration) -> u64 {
    let clock = "TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) * 2 DIV 125";
    let ahead = ahead.as_micros() * 2 / 125;
    server.sql(&[&format!("UPDATE leasehold.{} SET epoch = {clock} + {ahead}", S::TABLE)]).await;
    epoch::<S>(server).await
}

async fn epoch<S: Subject>(server: &Server) -> u64 {
    server.number(&format!("SELECT epoch FROM leasehold.{}", S::TABLE)).await
}

pub async fn an_epoch_that_is_ahead_of_the_clock_waits_for_it_unless_the_clock_was_set_back<S: Subject>() {
    let server = migrated::<S>(&[]).await;
    let locks = S::connect_to(&server.url()).await.unwrap();
    let store = store::<S>(&server.url()).await;
    let key = LockKey::new("k").unwrap();
    locks.lock(&key).await.unwrap().release().await.unwrap();
    let modes: &[_] = if store.capabilities().has(Capability::Shared) {
        &[Mode::Exclusive, Mode::Shared]
    } else {
        &[Mode::Exclusive]
    };
    for &mode in modes {
        let claim = || Claim::new(&key, mode, Duration::from_secs(60));
        let ahead = set_ahead::<S>(&server, Duration::from_millis(900)).await;
        let refused = store.try_acquire(&claim()).await.unwrap();
        assert_eq!(refused, Attempt::AHEAD_OF_THE_CLOCK, "{mode:?}");
        assert_eq!(epoch::<S>(&server).await, ahead, "{mode:?}: what is refused changes nothing");
        let waited = locks.lock(&key).await.unwrap();
        assert!(waited.fencing_token().unwrap().epoch() > ahead, "{mode:?}: the clock comes past it");
        waited.release().await.unwrap();

        let set_back = set_ahead::<S>(&server, Duration::from_secs(3600)).await;
        let claim = claim();
        let granted = store.try_acquire(&claim).await.unwrap();
        assert_eq!(granted, Attempt::Granted { epoch: Some(set_back + 1) }, "{mode:?}: not shut for an hour");
        store.release(&claim.grant(None)).await.unwrap();
    }
}
