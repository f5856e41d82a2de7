//! Steps that leave together. The tests start the server; without `redis-server` they are ignored.
//!
//! While the server is stopped nothing comes back, so that it is certain what waits for what.

use std::pin::Pin;
use std::time::Duration;

use futures::future::{JoinAll, join_all};
use futures::poll;
use leasehold_core::{Attempt, Backend, Claim, LeaseStatus};
use leasehold_redis_single::{ErrorKind, LockKey, Mode, RedisSingle, RedisSingleBackend, Result};
use leasehold_testkit::redis::{Answer, Server};
use leasehold_testkit::{needs, test};

/// So many commands leave before anything waits.
const ENOUGH: usize = 2;

async fn connect(server: &Server) -> RedisSingleBackend {
    let limit = Duration::from_secs(60);
    let backend = RedisSingle::builder().url(server.url()).command_timeout(limit).backend().await.expect("connected");
    // The server learns the scripts, so that each step is one command.
    let claim = claim("warm-up");
    assert!(is_granted(&backend.try_acquire(&claim).await));
    assert!(matches!(backend.release(&claim.grant(None)).await, Ok(LeaseStatus::Held)));
    backend
}

fn claim(key: impl AsRef<str>) -> Claim {
    Claim::new(&LockKey::new(key).expect("a key"), Mode::Exclusive, Duration::from_secs(3600))
}

fn claims(count: usize) -> Vec<Claim> {
    (0..count).map(|number| claim(format!("k{number}"))).collect()
}

/// Begins them all, in their order, on a server that stands still. Returns when the driver has written what is in flight, so
/// that the server answers it at one time.
async fn begin<F: Future>(steps: impl Iterator<Item = F>) -> Pin<Box<JoinAll<F>>> {
    let mut all = Box::pin(join_all(steps));
    assert!(poll!(&mut all).is_pending());
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    all
}

fn is_granted(attempt: &Result<Attempt>) -> bool {
    matches!(attempt, Ok(Attempt::Granted { epoch: Some(_) }))
}

#[test]
async fn each_gets_an_answer_of_its_own() {
    let server = needs("redis-server", Server::start(&[]).await);
    let backend = connect(&server).await;
    server.ask(&["LPUSH", "{leasehold:k5}:lock", "theirs"]).await;
    server.ask(&["SET", "{leasehold:aiwa}:epoch", "many"]).await;
    server.ask(&["SET", "{leasehold:k7}:lock", "endless"]).await;
    let (ours, busy) = (claim("k8"), claim("k9"));
    assert!(is_granted(&backend.try_acquire(&ours).await) && is_granted(&backend.try_acquire(&busy).await));
    let claims = claims(10);
    server.pause();
    let mut attempts = begin(claims.iter().map(|claim| backend.try_acquire(claim))).await;
    let ours = ours.grant(None);
    let mut released = Box::pin(backend.release(&ours));
    assert!(poll!(&mut attempts).is_pending() && poll!(&mut released).is_pending());
    server.resume();
    let attempts = attempts.await;
    assert!(attempts[..5].iter().all(is_granted), "{attempts:?}");
    for (attempt, told) in [(&attempts[5], "list"), (&attempts[6], "not a counter"), (&attempts[7], "never expires")] {
        let error = attempt.as_ref().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Backend);
        assert!(error.to_string().contains(told), "{error}");
    }
    for attempt in &attempts[8..] {
        assert!(matches!(attempt, Ok(Attempt::Busy { retry_in: Some(_) })), "{attempt:?}");
    }
    assert_eq!(released.await.unwrap(), LeaseStatus::Held);
    assert_eq!(server.ask(&["LLEN", "{leasehold:k5}:lock"]).await.number(), 1);
}

#[test]
async fn steps_of_one_key_in_one_batch_are_carried_out_one_after_the_other() {
    let server = needs("redis-server", Server::start(&[]).await);
    let backend = connect(&server).await;
    let (held, next, late, one, other) = (claim("k"), claim("k"), claim("l"), claim("m"), claim("m"));
    assert!(is_granted(&backend.try_acquire(&held).await));
    let others = claims(ENOUGH);
    let (held, undone) = (held.grant(None), late.grant(None));
    server.pause();
    // These are in flight, and what comes behind them is two batches: of the four steps for `l` and `m`, and of those for `k`.
    let ahead = begin(others.iter().map(|claim| backend.try_acquire(claim))).await;
    let releases = futures::future::join3(backend.release(&held), backend.release(&held), backend.try_acquire(&next));
    let claims = futures::future::join4(
        backend.try_acquire(&late),
        backend.release(&undone),
        backend.try_acquire(&one),
        backend.try_acquire(&other),
    );
    let mut all = Box::pin(futures::future::join(claims, releases));
    assert!(poll!(&mut all).is_pending());
    server.resume();
    assert!(ahead.await.iter().all(is_granted));
    let ((granted, given_back, one, other), (first, again, after)) = all.await;
    assert_eq!((first.unwrap(), again.unwrap()), (LeaseStatus::Held, LeaseStatus::NotHeld));
    assert!(is_granted(&after) && is_granted(&granted) && is_granted(&one), "{after:?} {granted:?} {one:?}");
    assert_eq!(given_back.unwrap(), LeaseStatus::Held, "it went ahead of its claim");
    assert!(matches!(other, Ok(Attempt::Busy { .. })), "{other:?}");
    let Answer::List(locks) = server.ask(&["KEYS", "*:lock"]).await else { panic!("no list") };
    assert_eq!(locks.len(), ENOUGH + 2);
}
