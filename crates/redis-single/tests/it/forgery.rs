//! Messages of grants that nobody granted, from somebody who may read the line and publish. Whoever may do that can
//! take locks as well; what is held here is that it does no lasting harm.

use std::time::Duration;

use leasehold_redis_single::{
    Admin, ErrorKind, FencingToken, LocalHandoff, LockGuard, LockOptions, LockerExt, LossReason, RedisSingle,
    RedisSingleBuilder, Result,
};
use leasehold_testkit::redis::{Answer, LeastUser, Server, ask};
use leasehold_testkit::{eventually, needs, test};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::waiters::{LINE, LOCK, clock, key};

const MINUTE: Duration = Duration::from_secs(60);

fn to(server: &Server) -> RedisSingleBuilder {
    RedisSingle::builder().url(server.url()).local_handoff(LocalHandoff::off())
}

fn waits(locks: &RedisSingle, options: &LockOptions) -> JoinHandle<Result<LockGuard>> {
    let (locks, options) = (locks.clone(), options.clone());
    tokio::spawn(async move { Ok(locks.acquire(&key(), &options).await?.expect("it waits for ever")) })
}

/// Who waits, and where that is told of a grant.
async fn first_in_line(server: &Server) -> Option<(String, String)> {
    let Answer::List(fields) = server.ask(&["HGETALL", LINE]).await else { return None };
    fields.chunks(2).find_map(|pair| {
        let owner = Some(pair[0].text()).filter(|field| field.len() == 32)?;
        Some((owner.to_owned(), pair[1].text().split(' ').nth(3)?.strip_prefix('!')?.to_owned()))
    })
}

async fn forge(server: &Server, number: &str) {
    eventually("somebody waits and listens", async || first_in_line(server).await.is_some()).await;
    let (owner, inbox) = first_in_line(server).await.expect("somebody waits");
    let heard = server.ask(&["PUBLISH", &inbox, &format!("{owner} {number} {LOCK}")]).await;
    assert_eq!(heard, Answer::Number(1));
}

#[test]
async fn a_forged_guard_ends_with_its_first_renewal_and_its_number_is_soon_passed() -> Result<()> {
    let server = needs("redis-server", Server::start(&[]).await);
    let (theirs, ours) = (to(&server).connect().await?, to(&server).connect().await?);
    for ttl in [Duration::from_secs(3600), Duration::from_secs(2)] {
        let held = theirs.acquire(&key(), &LockOptions::new().ttl(MINUTE)).await?.expect("it is free");
        let mut waiter = waits(&ours, &LockOptions::new().ttl(ttl));
        let (number, forged) = loop {
            let number = clock(&server).await + 16_000;
            forge(&server, &number.to_string()).await;
            // A process that stood still meanwhile does not believe it, and is told again.
            if let Ok(made) = timeout(Duration::from_secs(2), &mut waiter).await {
                break (number, made.expect("it goes on")?);
            }
        };
        let lost = timeout(MINUTE, forged.lost()).await.expect("it is lost");
        assert_eq!(lost, LossReason::Stolen);
        assert!(held.is_held());
        drop(forged);
        // The line itself is kept for a minute.
        let given_up = eventually("its place is given up", async || first_in_line(&server).await.is_none());
        timeout(MINUTE / 2, given_up).await.expect("long before the line is forgotten");

        let token = held.fencing_token();
        let _ = held.release().await?;
        let next = ours.lock("k").await?;
        assert!(next.fencing_token() > token);
        // What took a write with the forged number goes on when the clock is there.
        eventually("the clock is past it", async || clock(&server).await > number).await;
        let _ = next.release().await?;
        let later = theirs.lock("k").await?;
        assert!(later.fencing_token() > Some(FencingToken::of_epoch(number)));
        let _ = later.release().await?;
    }
    Ok(())
}

#[test]
async fn a_forged_message_makes_no_guard_beyond_the_clock_without_renewal_or_if_grants_are_verified() -> Result<()> {
    let server = needs("redis-server", Server::start(&[]).await);
    let theirs = to(&server).connect().await?;
    let trusting = to(&server).connect().await?;
    let verifying = to(&server).verify_grants(true).connect().await?;
    let (usual, brief) = (LockOptions::new(), LockOptions::new().ttl(Duration::from_secs(2)));
    for (ours, options, ahead) in [
        (&trusting, usual.clone(), 160_000),
        (&trusting, usual.clone(), 1 << 50),
        (&trusting, usual.clone(), (1 << 53) - 1),
        (&trusting, usual.clone(), u64::MAX),
        (&trusting, usual.clone().renew(false), 0),
        (&trusting, brief.clone().renew(false), 0),
        (&verifying, usual, 0),
        (&verifying, brief, 0),
    ] {
        let held = theirs.lock("k").await?;
        let mut waiter = waits(ours, &options);
        eventually("somebody waits and listens", async || first_in_line(&server).await.is_some()).await;
        let asked = server.scripts().await;
        forge(&server, &clock(&server).await.saturating_add(ahead).to_string()).await;
        tokio::select! {
            guard = &mut waiter => panic!("{ahead} {options:?}: {guard:?}"),
            () = eventually("it is asked for", async || server.scripts().await >= asked + 2) => {}
        }
        let before = held.fencing_token();
        let _ = held.release().await?;
        let guard = waiter.await.expect("it goes on")?;
        assert!(guard.is_held() && guard.fencing_token() > before);
        let _ = guard.release().await?;
    }
    Ok(())
}

#[test]
async fn a_user_who_may_only_read_or_has_another_namespace_cannot_forge() -> Result<()> {
    let server = needs("redis-server", Server::start(&[]).await);
    let (theirs, ours) = (to(&server).connect().await?, to(&server).connect().await?);
    let held = theirs.lock("k").await?;
    let waiter = waits(&ours, &LockOptions::new());
    eventually("somebody waits and listens", async || first_in_line(&server).await.is_some()).await;
    let (_, inbox) = first_in_line(&server).await.expect("somebody waits");

    let readme = include_str!("../../README.md");
    let viewer = LeastUser::of(&readme[readme.find("ACL SETUSER viewer").expect("its rules")..]);
    let looks = RedisSingle::connect(&viewer.make(&server, &[]).await).await?;
    assert_eq!(looks.inspect(&key()).await?.holders.len(), 1);
    assert_eq!(looks.list("", None).await?.keys.len(), 1);
    assert_eq!(looks.force_release(&key()).await.unwrap_err().kind(), ErrorKind::Backend);
    assert_eq!(looks.try_lock("free").await.unwrap_err().kind(), ErrorKind::Backend);
    let in_lua = format!("return redis.call('PUBLISH', '{inbox}', 'x')");
    for user in [viewer, LeastUser::of(&readme.replace("leasehold:", "another:"))] {
        user.make(&server, &[]).await;
        for words in [&["HGETALL", LINE][..], &["HKEYS", LINE], &["PUBLISH", &inbox, "x"], &["EVAL", &in_lua, "0"]] {
            let answer = ask(server.port(), &[&["AUTH", "app", "pw"], words]).await.expect("an answer");
            let refused = ["NOPERM", "ACL", "The user executing the script can't"]
                .iter()
                .any(|word| answer.text().contains(word));
            assert!(refused && matches!(answer, Answer::Refused(_)), "{user:?} {words:?}: {answer:?}");
        }
    }
    let _ = held.release().await?;
    assert!(waiter.await.expect("it goes on")?.is_held());
    Ok(())
}
