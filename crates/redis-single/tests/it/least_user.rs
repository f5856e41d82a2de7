//! What the README says of the least user. The tests start the servers they need; without `redis-server` they are ignored.

use std::time::Duration;

use leasehold_redis_single::{
    Admin, ErrorKind, KIND, LockKey, LockOptions, LockerExt, LossReason, RedisSingle, Result, Wait,
};
use leasehold_testkit::redis::{LeastUser, Scenario, Server, Unreported};
use leasehold_testkit::{eventually, needs, test};

use crate::waiters::locker_at;

const README: &str = include_str!("../../README.md");

/// An inbox is never unsubscribed from.
const UNREPORTED: Unreported = Unreported {
    warnings: &[
        "Redis refuses subscriptions",
        "does not let a release serve those who wait",
        "whether the server evicts",
    ],
    silent: &["+type", "+pubsub|numsub", "+unsubscribe", "+hlen"],
};

fn patiently() -> LockOptions {
    LockOptions::new().wait(Wait::UpTo(Duration::from_secs(60)))
}

#[test]
async fn the_least_privileges_are_enough_for_everything() -> Result<()> {
    let server = needs("redis-server", Server::start(&[]).await);
    let url = LeastUser::of(README).make(&server, &[]).await;
    let (here, there) = (RedisSingle::connect(&url).await?, RedisSingle::connect(&url).await?);
    let key = LockKey::new("k")?;
    let guard = here.lock("k").await?;
    guard.renew().await?;
    let waiting = tokio::spawn({
        let there = there.clone();
        async move { there.acquire(&LockKey::new("k")?, &patiently()).await }
    });
    let has_a_place = async || server.ask(&["EXISTS", "{leasehold:k}:queue"]).await.number() == 1;
    eventually("the waiter has a place", has_a_place).await;
    assert_eq!(here.list("", None).await?.keys.len(), 1);
    let _ = guard.release().await?;
    let guard = waiting.await.unwrap()?.unwrap();
    assert_eq!(here.inspect(&key).await?.holders.len(), 1);
    assert_eq!(here.force_release(&key).await?.holders.len(), 1);
    assert_eq!(guard.renew().await.unwrap_err().kind(), ErrorKind::Lost(LossReason::ForceReleased));
    Ok(())
}

#[test]
async fn without_any_one_of_its_commands_it_is_refused_or_all_is_in_order_as_the_readme_says() {
    let servers = [needs("redis-server", Server::start(&[]).await)];
    let tell = async |urls: Vec<String>| Scenario::of(Some(&servers[0]), async |_| locker_at(&urls[0]).await).await;
    LeastUser::of(README).leave_out_each(&servers, UNREPORTED, tell).await;
}

#[test]
async fn the_rights_that_doctor_asks_for_are_those_of_the_readme() {
    LeastUser::of(README).is_one_with_doctor(&KIND, "").await;
}
