//! Steps that leave together.
//!
//! While the server is stopped nothing comes back, so that it is certain what waits for what.

use std::time::Duration;

use futures::future::join_all;
use futures::poll;
use leasehold_core::{Attempt, Backend, Claim, LeaseStatus};
use leasehold_redis_single::{ErrorKind, LockKey, Mode, RedisSingle, RedisSingleBackend, Result};
use leasehold_testkit::redis::Server;
use leasehold_testkit::{needs, test};

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
    let claims: Vec<_> = (0..10).map(|number| claim(format!("k{number}"))).collect();
    server.pause();
    let mut attempts = Box::pin(join_all(claims.iter().map(|claim| backend.try_acquire(claim))));
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
