//! Steps that leave together. The tests start the server; without `redis-server` they are ignored.
//!
//! While the server is stopped nothing comes back, so that it is certain what waits for what.

use std::pin::Pin;
use std::time::Duration;

use futures::future::{JoinAll, join_all};
use futures::poll;
use leasehold_core::{Attempt, Backend, Claim, GrantRef, LeaseStatus};
use leasehold_redis_single::{Error, ErrorKind, LockKey, LockerExt, Mode, RedisSingle, RedisSingleBackend, Result};
use leasehold_testkit::redis::{Answer, Server};
use leasehold_testkit::{eventually, needs, test};

/// So many commands leave before anything waits.
const ENOUGH: usize = 2;
/// So many steps are a full batch.
const FULL: usize = 32;
/// So many are not divided.
const FEW: usize = 4;

async fn connect(server: &Server) -> RedisSingleBackend {
    let limit = Duration::from_secs(60);
    let backend = RedisSingle::builder().url(server.url()).command_timeout(limit).backend().await.expect("connected");
    // The server learns the scripts, so that each step is one command.
    let claim = claim("warm-up");
    assert!(is_granted(&backend.try_acquire(&claim).await));
    assert!(matches!(backend.release(&grant(&claim)).await, Ok(LeaseStatus::Held)));
    backend
}

fn claim(key: impl AsRef<str>) -> Claim {
    Claim::new(&LockKey::new(key).expect("a key"), Mode::Exclusive, Duration::from_secs(3600))
}

fn claims(count: usize) -> Vec<Claim> {
    (0..count).map(|number| claim(format!("k{number}"))).collect()
}

fn grant(claim: &Claim) -> GrantRef {
    GrantRef { key: claim.key.clone(), owner: claim.owner, mode: claim.mode, epoch: None }
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

async fn locks(server: &Server) -> usize {
    match server.ask(&["KEYS", "*:lock"]).await {
        Answer::List(names) => names.len(),
        other => panic!("{other:?}"),
    }
}

#[test]
async fn what_comes_in_while_others_are_on_their_way_leaves_in_full_batches_or_even_shares() {
    let server = needs("redis-server", Server::start(&[]).await);
    for (waiting, batches) in [(1, 1), (FEW, 1), (10, 2), (FULL - 1, 2), (FULL, 1), (FULL + 1, 2), (3 * FULL + FEW, 4)]
    {
        let claims = claims(ENOUGH + waiting);
        // Of its own: nothing of an earlier round may be in flight yet.
        let backend = connect(&server).await;
        let before = server.calls("evalsha").await;
        server.pause();
        let all = begin(claims.iter().map(|claim| backend.try_acquire(claim))).await;
        server.resume();
        let attempts = all.await;
        assert!(attempts.iter().all(is_granted), "{attempts:?}");
        assert_eq!(server.calls("evalsha").await - before, (ENOUGH + batches) as u64, "{waiting} waiting");
        let mut epochs: Vec<_> = attempts.iter().map(|attempt| format!("{attempt:?}")).collect();
        epochs.dedup();
        let backend = connect(&server).await;
        let before = server.calls("evalsha").await;
        server.pause();
        let all = begin(claims.iter().map(async |claim| backend.release(&grant(claim)).await)).await;
        server.resume();
        assert!(all.await.into_iter().all(|held| held.unwrap() == LeaseStatus::Held));
        assert_eq!(server.calls("evalsha").await - before, (ENOUGH + batches) as u64, "{waiting} waiting");
    }
    assert_eq!(locks(&server).await, 0);
}

#[test]
async fn steps_that_come_one_by_one_never_leave_as_a_batch() -> Result<()> {
    let server = needs("redis-server", Server::start(&[]).await);
    let locks = RedisSingle::connect(&server.url()).await?;
    for _ in 0..20 {
        locks.lock("k").await?.release().await.map(drop)?;
    }
    assert_eq!(server.calls("evalsha").await, 40);
    // One to teach the server the script.
    assert_eq!(server.calls("eval").await, 1);
    Ok(())
}

#[test]
async fn without_group_commit_each_leaves_alone() {
    let server = needs("redis-server", Server::start(&[]).await);
    let builder = RedisSingle::builder().url(server.url()).command_timeout(Duration::from_secs(60));
    let backend = builder.group_commit(false).backend().await.unwrap();
    let claims = claims(100);
    server.pause();
    let all = begin(claims.iter().map(|claim| backend.try_acquire(claim))).await;
    server.resume();
    assert!(all.await.iter().all(is_granted));
    assert_eq!(server.calls("evalsha").await, 100);
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
    let ours = grant(&ours);
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
    let (held, undone) = (grant(&held), grant(&late));
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
    assert_eq!(locks(&server).await, ENOUGH + 2);
}

#[test]
async fn in_a_batch_a_key_goes_to_one_claim_and_nobody_but_its_owner_frees_it() {
    let server = needs("redis-server", Server::start(&[]).await);
    let backend = connect(&server).await;
    // Granted long ago: a new counter would be ahead of the clock for the second of two grants.
    server.ask(&["SET", "{leasehold:bhrg}:epoch", "epoch 5"]).await;
    let on_their_way = claims(ENOUGH);
    let rivals = [claim("hot"), claim("hot"), claim("other"), claim("hot")];
    server.pause();
    let all = begin(on_their_way.iter().chain(&rivals).map(|claim| backend.try_acquire(claim))).await;
    server.resume();
    let attempts = all.await;
    let granted: Vec<_> = attempts.iter().map(is_granted).collect();
    assert_eq!(granted, [true, true, true, false, true, false], "{attempts:?}");

    let backend = connect(&server).await;
    let strangers = [claim("hot"), claim("other"), claim("k0"), claim("k1")].map(|claim| grant(&claim));
    let ours: Vec<_> = on_their_way.iter().map(grant).collect();
    server.pause();
    let all = begin(ours.iter().chain(&strangers).map(async |grant| backend.release(grant).await)).await;
    server.resume();
    let statuses: Vec<_> = all.await.into_iter().map(Result::unwrap).collect();
    assert_eq!(statuses[..ENOUGH], [LeaseStatus::Held; ENOUGH]);
    assert_eq!(statuses[ENOUGH..], [LeaseStatus::NotHeld; FEW]);
    assert_eq!(locks(&server).await, 2, "what a stranger gives back stays");
}

#[test]
async fn a_key_or_command_that_is_denied_does_not_touch_the_others() {
    let server = needs("redis-server", Server::start(&[]).await);
    let rules = ["ACL", "SETUSER", "app", "on", ">pw", "+@all", "&*"];
    for (denied, refused) in [("~{leasehold:k[0-6]}:*", 7..10), ("-time", 0..10)] {
        // What the README says of a user whose pattern is narrower than the namespace.
        let keys = if denied.starts_with('~') { [denied, "~{leasehold:????}:epoch"] } else { ["~*", "on"] };
        server.ask(&[&rules[..], &["resetkeys"], &keys].concat()).await;
        let url = server.url().replace("redis://", "redis://app:pw@");
        let builder = RedisSingle::builder().url(url).command_timeout(Duration::from_secs(60));
        let backend = builder.backend().await.unwrap();
        let held = claim("k0/held");
        if denied == "-time" {
            assert!(is_granted(&backend.try_acquire(&held).await));
            server.ask(&["ACL", "SETUSER", "app", denied]).await;
        }
        let claims = claims(10);
        server.pause();
        let mut attempts = begin(claims.iter().map(|claim| backend.try_acquire(claim))).await;
        let grant = grant(&held);
        let mut released = Box::pin(backend.release(&grant));
        assert!(poll!(&mut attempts).is_pending() && poll!(&mut released).is_pending());
        server.resume();
        for (number, attempt) in attempts.await.into_iter().enumerate() {
            if refused.contains(&number) {
                assert_eq!(attempt.unwrap_err().kind(), ErrorKind::Backend, "{denied} {number}");
            } else {
                assert!(is_granted(&attempt), "{denied} {number} {attempt:?}");
            }
        }
        if denied == "-time" {
            assert_eq!(released.await.unwrap(), LeaseStatus::Held);
        }
        server.ask(&["FLUSHALL"]).await;
    }
}

#[test]
async fn a_cancelled_caller_loses_no_grant_and_leaves_nothing_behind() {
    let server = needs("redis-server", Server::start(&[]).await);
    // The first two are on their way, the others wait.
    for leaving in [0, 1, 2, 5, 9] {
        // Of its own: nothing of an earlier round may be in flight yet.
        let backend = connect(&server).await;
        let claims = claims(10);
        server.pause();
        let mut attempts = Vec::new();
        for claim in &claims {
            let mut attempt = backend.try_acquire(claim);
            assert!(poll!(&mut attempt).is_pending());
            attempts.push(attempt);
        }
        drop(attempts.remove(leaving));
        server.resume();
        for attempt in attempts {
            assert!(is_granted(&attempt.await), "without {leaving}");
        }
        let left = if leaving < ENOUGH { 10 } else { 9 };
        eventually("what was sent is done", async || locks(&server).await == left).await;
        server.ask(&["FLUSHALL"]).await;
    }
}

#[test(multi_thread, quiet)]
async fn a_thousand_tasks_on_two_threads_get_what_is_theirs() -> Result<()> {
    let server = needs("redis-server", Server::start(&[]).await);
    let locker = RedisSingle::connect(&server.url()).await?;
    let cycle = |number: usize| {
        let locker = locker.clone();
        async move {
            for _ in 0..5 {
                let guard = locker.lock(&format!("k{number}")).await?;
                guard.release().await?;
            }
            Ok::<_, Error>(())
        }
    };
    let tasks: Vec<_> = (0..1000).map(|number| tokio::spawn(cycle(number))).collect();
    for task in tasks {
        task.await.unwrap()?;
    }
    assert_eq!(locks(&server).await, 0);
    assert!(server.calls("evalsha").await < 10_000 / 4, "they hardly left together");
    Ok(())
}
