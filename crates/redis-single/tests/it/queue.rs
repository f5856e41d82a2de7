//! Waiters of all processes queue in Redis.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use leasehold_core::LeaseStatus;
use leasehold_redis_single::{Capability, LockOptions, Locker, LockerExt, RedisSingle, Result};
use leasehold_testkit::redis::{Answer, Server};
use leasehold_testkit::{eventually, needs, test};
use tokio::runtime::Builder;
use tokio::task::JoinSet;

use crate::waiters::{FENCE, LINE, LOCK, has_it, holds, key, leaves, listening, locker, places, takes_a_place};

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
    warm.join_all().await.into_iter().collect::<Result<Vec<_>>>()?;

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
    let counts = tasks.join_all().await.into_iter().collect::<Result<Vec<_>>>()?;
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
        let holder = holds(&here).await?;
        takes_a_place(&there).await?;
        server.ask(obstacle).await;
        let released = leaves(&here, &holder).await;
        // Nobody asks for it: that the lease is an hour would show.
        assert_eq!(server.ask(&["EXISTS", LOCK]).await.number(), 0, "{obstacle:?}");
        assert_eq!(released?, LeaseStatus::Held, "{obstacle:?}");
        server.ask(undone).await;
        server.ask(&["DEL", LINE, FENCE]).await;
    }
    Ok(())
}

#[test]
async fn a_waiter_that_died_without_a_trace_keeps_the_others_for_three_seconds_at_most() -> Result<()> {
    let server = needs("redis-server", Server::start(&[]).await);
    let (dead, there) = (listening(&server).await?, locker(&server).await?);
    let held = locker(&server).await?.lock("k").await?;
    let first = takes_a_place(&dead).await?;
    let place = server.ask(&["HGET", LINE, &first.owner.to_hex()]).await;
    let counts_until: u64 = place.text().split(' ').nth(2).unwrap().parse().unwrap();
    let Answer::List(time) = server.ask(&["TIME"]).await else { panic!("no time") };
    let now = time[0].text().parse::<u64>().unwrap() * 1000;
    assert!(counts_until <= now + 1000 + 3000, "{counts_until} is more than three seconds after {now}");
    let waiting = tokio::spawn(async move { there.lock("k").await });
    eventually("both have a place", async || places(&server).await == 2).await;
    let _ = held.release().await?;
    assert!(has_it(&server, &first).await);
    assert!(server.ask(&["PTTL", LOCK]).await.number() <= 3000, "an hour was asked for");
    assert!(server.ask(&["PTTL", LINE]).await.number() <= 60_000);
    assert!(waiting.await.unwrap()?.is_held());
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

#[test]
async fn a_waiter_that_was_stopped_makes_no_guard_of_a_grant_that_is_another_s_by_now() -> Result<()> {
    let server = needs("redis-server", Server::start(&[]).await);
    let (hour, short) = (Duration::from_secs(3600), Duration::from_secs(2));
    for options in [LockOptions::new().ttl(hour), LockOptions::new().ttl(short).renew(false)] {
        // On one thread, which can stand still, as a process does that is stopped.
        let runtime = Box::leak(Box::new(Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap()));
        let (holder, other) = (locker(&server).await?, locker(&server).await?);
        let held = holder.lock("k").await?;
        let url = server.url();
        let mut stopped = runtime.spawn(async move {
            let locks = RedisSingle::connect(&url).await?;
            let guard = locks.acquire(&key(), &options).await?.expect("it waits for ever");
            let token = guard.fencing_token();
            guard.release().await.map(|_| token)
        });
        eventually("it has a place", async || places(&server).await == 1).await;
        let (goes_on, stands_still) = std::sync::mpsc::channel::<()>();
        let (stands, standing) = tokio::sync::oneshot::channel();
        runtime.spawn(async move {
            let _ = stands.send(());
            let _ = stands_still.recv();
        });
        standing.await.expect("it runs");
        // Granted to the one that stands still, and then, when that lease is over, to another.
        let _ = held.release().await?;
        let theirs = other.lock("k").await?;
        let asked = server.scripts().await;
        drop(goes_on);
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

/// As long as a place counts, and longer than a command may take. A release in the silence is the first thing that the server
/// hears, when nobody's place counts any more.
#[test]
async fn a_server_that_is_silent_for_seconds_keeps_the_order_of_the_queue() -> Result<()> {
    const SILENCE: Duration = Duration::from_secs(3);
    const LENGTH: usize = 8;
    for is_released_in_the_silence in [false, true] {
        let server = needs("redis-server", Server::start(&[]).await);
        let holder = locker(&server).await?;
        // The server knows all scripts.
        let _ = holder.lock("k").await?.release().await?;
        let mut guard = Some(holder.lock("k").await?);
        let (mut waiters, order) = (JoinSet::new(), Arc::<Mutex<Vec<_>>>::default());
        for waiter in 0..LENGTH {
            let (locks, order) = (locker(&server).await?, Arc::clone(&order));
            waiters.spawn(async move {
                let guard = locks.lock("k").await?;
                order.lock().unwrap().push(waiter);
                guard.release().await.map(drop)
            });
            eventually("it has a place", async || places(&server).await > waiter).await;
        }
        server.pause();
        drop(guard.take_if(|_| is_released_in_the_silence));
        tokio::time::sleep(SILENCE).await;
        server.resume();
        drop(guard);
        waiters.join_all().await.into_iter().collect::<Result<()>>()?;
        assert_eq!(*order.lock().unwrap(), (0..LENGTH).collect::<Vec<_>>());
        eventually("nothing is left", async || server.ask(&["EXISTS", LOCK, LINE]).await.number() == 0).await;
    }
    Ok(())
}
