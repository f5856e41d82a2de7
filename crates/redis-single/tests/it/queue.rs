//! Waiters of all processes queue in Redis. The tests start the servers they need; without `redis-server` they are ignored.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use leasehold_core::{Attempt, Backend, LeaseStatus};
use leasehold_redis_single::{Capability, LockOptions, Locker, LockerExt, RedisSingle, Result};
use leasehold_testkit::redis::{Answer, Server};
use leasehold_testkit::{eventually, needs, test};
use tokio::task::JoinSet;

use crate::waiters::{FENCE, LINE, LOCK, claim, has_it, key, listening, locker, places, rewrite, takes_a_place};

#[test(quiet)]
async fn a_key_that_goes_round_costs_two_commands_an_acquisition_and_all_have_it_as_often() -> Result<()> {
    const CLIENTS: u64 = 8;
    const EACH: u64 = 100;
    let server = needs("redis-server", Server::start(&[]).await);
    let mut clients = Vec::new();
    let held = locker(&server).await?.lock("k").await?;
    let mut warm = JoinSet::new();
    for _ in 0..CLIENTS {
        let client = locker(&server).await?;
        clients.push(client.clone());
        warm.spawn(async move { client.lock("k").await?.release().await });
    }
    eventually("all have a place", async || places(&server).await == clients.len()).await;
    let _ = held.release().await?;
    while let Some(warmed) = warm.join_next().await {
        let _ = warmed.unwrap()?;
    }

    let before = server.scripts().await;
    let left = Arc::new(AtomicU64::new(CLIENTS * EACH));
    let mut tasks = JoinSet::new();
    for client in clients {
        let left = Arc::clone(&left);
        tasks.spawn(async move {
            let mut count = 0_u64;
            while left.fetch_update(Ordering::AcqRel, Ordering::Acquire, |left| left.checked_sub(1)).is_ok() {
                let _ = client.lock("k").await?.release().await?;
                count += 1;
            }
            Ok::<_, leasehold_redis_single::Error>(count)
        });
    }
    let mut counts = Vec::new();
    while let Some(ended) = tasks.join_next().await {
        counts.push(ended.unwrap()?);
    }
    let total: u64 = counts.iter().sum();
    let commands = server.scripts().await - before;
    assert!(commands * 10 <= total * 22, "{commands} commands for {total} acquisitions");
    // Jain's index, at least 0.99.
    let squares: u64 = counts.iter().map(|count| count * count).sum();
    assert!(total * total * 100 >= 99 * CLIENTS * squares, "{counts:?}");
    assert_eq!(server.ask(&["KEYS", "*"]).await, Answer::List(vec![Answer::Text(FENCE.into())]));
    Ok(())
}

#[test]
async fn a_waiter_whose_process_is_gone_is_passed_over_at_once() -> Result<()> {
    let server = needs("redis-server", Server::start(&[]).await);
    let (dead, alive) = (listening(&server).await?, listening(&server).await?);
    let held = locker(&server).await?.lock("k").await?;
    takes_a_place(&dead).await?;
    let next = takes_a_place(&alive).await?;
    dead.close().await;
    eventually("the server has noticed", async || server.clients().await == 3).await;
    let published = server.calls("publish").await;
    let _ = held.release().await?;
    assert!(has_it(&server, &next).await);
    assert_eq!(server.calls("publish").await - published, 1, "a grant that nobody has was told");
    Ok(())
}

#[test]
async fn a_release_frees_the_key_at_once_where_no_waiter_can_be_served() -> Result<()> {
    let server = needs("redis-server", Server::start(&[]).await);
    let (here, there) = (listening(&server).await?, listening(&server).await?);
    let soon = "local t = redis.call('TIME') \
                redis.call('SET', KEYS[1], string.format('epoch %d', t[1] * 16000 + t[2] * 2 / 125 + 12000))";
    for (obstacle, undone) in [
        (&["SET", LINE, "theirs"][..], &["PING"][..]),
        (&["SET", FENCE, "theirs"], &["PING"]),
        (&["EVAL", soon, "1", FENCE], &["PING"]),
        (&["CONFIG", "SET", "maxmemory", "1"], &["CONFIG", "SET", "maxmemory", "0"]),
        (&["ACL", "SETUSER", "default", "-hmget"], &["ACL", "SETUSER", "default", "+hmget"]),
        (&["ACL", "SETUSER", "default", "-hget"], &["ACL", "SETUSER", "default", "+hget"]),
    ] {
        let holder = claim();
        assert!(matches!(here.try_acquire(&holder).await?, Attempt::Granted { .. }));
        takes_a_place(&there).await?;
        server.ask(obstacle).await;
        let released = here.release(&holder.grant(None)).await;
        // Nobody asks for it: that the lease is an hour would show.
        assert_eq!(server.ask(&["EXISTS", LOCK]).await.number(), 0, "{obstacle:?}");
        assert_eq!(released?, LeaseStatus::Held, "{obstacle:?}");
        server.ask(undone).await;
        server.ask(&["DEL", LINE, FENCE]).await;
    }
    Ok(())
}

#[test]
async fn a_release_frees_the_key_at_once_where_all_waiters_died() -> Result<()> {
    let server = needs("redis-server", Server::start(&[]).await);
    let (holder, dead) = (listening(&server).await?, [listening(&server).await?, listening(&server).await?]);
    let held = claim();
    assert!(matches!(holder.try_acquire(&held).await?, Attempt::Granted { .. }));
    for dead in &dead {
        takes_a_place(dead).await?;
        dead.close().await;
    }
    eventually("the server has noticed", async || server.clients().await == 2).await;
    assert_eq!(holder.release(&held.grant(None)).await?, LeaseStatus::Held);
    assert_eq!(server.ask(&["EXISTS", LOCK]).await.number(), 0);
    Ok(())
}

#[test]
async fn a_waiter_that_died_without_a_trace_keeps_the_others_for_three_seconds_at_most() -> Result<()> {
    let server = needs("redis-server", Server::start(&[]).await);
    let dead = listening(&server).await?;
    let (here, there) = (locker(&server).await?, locker(&server).await?);
    let held = here.lock("k").await?;
    let granted = takes_a_place(&dead).await?;
    let waiting = tokio::spawn(async move { there.lock("k").await });
    eventually("both have a place", async || places(&server).await == 2).await;
    let _ = held.release().await?;
    assert!(has_it(&server, &granted).await);
    assert!(server.ask(&["PTTL", LOCK]).await.number() <= 3000, "an hour was asked for");
    assert!(waiting.await.unwrap()?.is_held());
    Ok(())
}

#[test]
async fn a_place_that_was_not_confirmed_for_three_seconds_does_not_count() -> Result<()> {
    let server = needs("redis-server", Server::start(&[]).await);
    let (dead, alive) = (listening(&server).await?, listening(&server).await?);
    let held = locker(&server).await?.lock("k").await?;
    takes_a_place(&dead).await?;
    let till = server.ask(&["EVAL", "return redis.call('HVALS', KEYS[1])", "1", LINE]).await;
    let Answer::List(values) = till else { panic!("{till:?}") };
    let till: u64 = values.iter().find_map(|value| value.text().split(' ').nth(2)).unwrap().parse().unwrap();
    let Answer::List(time) = server.ask(&["TIME"]).await else { panic!("no time") };
    let now = time[0].text().parse::<u64>().unwrap() * 1000;
    assert!(till <= now + 1000 + 3000, "{till} is more than three seconds after {now}");
    rewrite(&server, "", 2, "1").await;
    let next = takes_a_place(&alive).await?;
    let _ = held.release().await?;
    assert!(has_it(&server, &next).await);
    let life = server.ask(&["PTTL", LINE]).await.number();
    assert!(life <= 60_000, "{life}");
    Ok(())
}

#[test]
async fn without_permission_to_subscribe_waiters_keep_their_places_and_ask() -> Result<()> {
    let server = needs("redis-server", Server::start(&[]).await);
    server.ask(&["ACL", "SETUSER", "app", "reset", "on", ">pw", "+@all", "~*", "resetchannels"]).await;
    let url = server.url().replace("redis://", "redis://app:pw@");
    let holder = RedisSingle::connect(&url).await?;
    let held = holder.lock("k").await?;
    let mut waiting = JoinSet::new();
    for count in 1..=3 {
        let client = RedisSingle::connect(&url).await?;
        waiting.spawn(async move { client.lock("k").await?.release().await });
        eventually("it has a place", async || places(&server).await == count).await;
    }
    let _ = held.release().await?;
    while let Some(served) = waiting.join_next().await {
        let _ = served.unwrap()?;
    }
    Ok(())
}

#[test]
async fn a_release_after_the_lease_ended_grants_to_the_first_in_the_queue() -> Result<()> {
    let server = needs("redis-server", Server::start(&[]).await);
    let (here, there) = (listening(&server).await?, listening(&server).await?);
    let holder = claim();
    assert!(matches!(here.try_acquire(&holder).await?, Attempt::Granted { .. }));
    let first = takes_a_place(&there).await?;
    // As at the end of its lease.
    server.ask(&["DEL", LOCK]).await;
    assert_eq!(here.release(&holder.grant(None)).await?, LeaseStatus::NotHeld);
    assert!(has_it(&server, &first).await);
    Ok(())
}

#[test]
async fn a_try_does_not_overtake_the_queue() -> Result<()> {
    let server = needs("redis-server", Server::start(&[]).await);
    let (store, others) = (listening(&server).await?, locker(&server).await?);
    let holder = claim();
    assert!(matches!(store.try_acquire(&holder).await?, Attempt::Granted { .. }));
    let first = takes_a_place(&store).await?;
    // As at the end of its lease.
    server.ask(&["DEL", LOCK]).await;
    assert!(others.try_lock("k").await?.is_none());
    assert!(has_it(&server, &first).await);
    Ok(())
}

#[test]
async fn a_claim_of_a_free_key_behind_others_is_answered_the_epoch_of_the_first_in_the_queue() -> Result<()> {
    let server = needs("redis-server", Server::start(&[]).await);
    let (here, there) = (listening(&server).await?, listening(&server).await?);
    let holder = claim();
    assert!(matches!(here.try_acquire(&holder).await?, Attempt::Granted { .. }));
    let first = takes_a_place(&there).await?;
    // As at the end of its lease.
    server.ask(&["DEL", LOCK]).await;
    let Attempt::Queued { epoch_of_holder, .. } = here.try_acquire(&claim()).await? else { panic!("not behind") };
    let Attempt::Granted { epoch } = there.try_acquire(&first).await? else { panic!("not the first") };
    assert!(epoch.is_some() && epoch == epoch_of_holder);
    Ok(())
}

#[test]
async fn a_queue_that_somebody_else_wrote_keeps_nobody_from_the_key() -> Result<()> {
    let server = needs("redis-server", Server::start(&[]).await);
    let (here, there) = (locker(&server).await?, locker(&server).await?);
    let owner = "f".repeat(32);
    for line in [
        &["SET", LINE, "theirs"][..],
        &["HSET", LINE, "last", "99999999999999999999"],
        &["HSET", LINE, "last", "many"],
        &["HSET", LINE, "first", "none", "last", "7"],
        &["HSET", LINE, "last", "1", "1", &owner],
        &["HSET", LINE, "last", "1", "1", &owner, &owner, "hello"],
        &["HSET", LINE, "last", "1", "1", &owner, &owner, "1 99999999999999 !x 1e9 x }"],
    ] {
        server.ask(&["DEL", LINE]).await;
        server.ask(line).await;
        let held = here.try_lock("k").await?.unwrap_or_else(|| panic!("{line:?}"));
        let there = there.clone();
        let asked = server.scripts().await;
        let waiting = tokio::spawn(async move { there.lock("k").await });
        eventually("it waits", async || server.scripts().await > asked).await;
        let _ = held.release().await?;
        let _ = waiting.await.unwrap()?.release().await?;
    }
    Ok(())
}

#[test]
async fn the_queue_can_be_off_and_programs_with_and_without_it_take_turns() -> Result<()> {
    let server = needs("redis-server", Server::start(&[]).await);
    let (with, without) =
        (locker(&server).await?, RedisSingle::builder().url(server.url()).queue(false).connect().await?);
    let confirmed = RedisSingle::builder().url(server.url()).confirm_replicas(1, Duration::from_secs(1));
    assert!(with.capabilities().has(Capability::Queue) && !without.capabilities().has(Capability::Queue));
    assert!(!confirmed.connect().await?.capabilities().has(Capability::Queue));
    for (holder, waiter) in [(&with, &without), (&without, &with)] {
        let held = holder.acquire(&key(), &LockOptions::new()).await?.unwrap();
        let (waiter, asked) = (waiter.clone(), server.scripts().await);
        let waiting = tokio::spawn(async move { waiter.lock("k").await });
        eventually("it waits", async || server.scripts().await > asked).await;
        let _ = held.release().await?;
        let _ = waiting.await.unwrap()?.release().await?;
    }
    assert_eq!(places(&server).await, 0);
    Ok(())
}

/// A runtime of its own that can stand still, as a process does that is stopped.
struct Process {
    runtime: tokio::runtime::Handle,
    _ends: tokio::sync::oneshot::Sender<()>,
}

impl Process {
    fn start() -> Self {
        let (ends, ended) = tokio::sync::oneshot::channel();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let handle = runtime.handle().clone();
        std::thread::spawn(move || runtime.block_on(async { drop(ended.await) }));
        Self { runtime: handle, _ends: ends }
    }

    /// Until what is returned drops.
    async fn stands_still(&self) -> std::sync::mpsc::Sender<()> {
        let (goes_on, held) = std::sync::mpsc::channel::<()>();
        let (stands, standing) = tokio::sync::oneshot::channel();
        self.runtime.spawn(async move {
            let _ = stands.send(());
            let _ = held.recv();
        });
        standing.await.expect("it runs");
        goes_on
    }
}

#[test]
async fn a_waiter_that_was_stopped_makes_no_guard_of_a_grant_that_is_another_s_by_now() -> Result<()> {
    let server = needs("redis-server", Server::start(&[]).await);
    let (hour, short) = (Duration::from_secs(3600), Duration::from_secs(2));
    for options in [LockOptions::new().ttl(hour), LockOptions::new().ttl(short).renew(false)] {
        let (process, holder, other) = (Process::start(), locker(&server).await?, locker(&server).await?);
        let held = holder.lock("k").await?;
        let url = server.url();
        let mut stopped = process.runtime.spawn(async move {
            let locks = RedisSingle::connect(&url).await?;
            let guard = locks.acquire(&key(), &options).await?.expect("it waits for ever");
            let token = guard.fencing_token();
            guard.release().await.map(|_| token)
        });
        eventually("it has a place", async || places(&server).await == 1).await;
        let standing = process.stands_still().await;
        // Granted to the one that stands still, and then, when that lease is over, to another.
        let _ = held.release().await?;
        let theirs = other.lock("k").await?;
        let asked = server.scripts().await;
        drop(standing);
        let asks = async || server.scripts().await >= asked + 3;
        tokio::select! {
            guard = &mut stopped => panic!("a guard beside that of another: {guard:?}"),
            () = eventually("it asks and asks again", asks) => {}
        }
        let token = theirs.fencing_token();
        let _ = theirs.release().await?;
        assert!(stopped.await.unwrap()? > token);
    }
    Ok(())
}
