//! Very many keys, each used once, and very many waits that are given up: what grows?

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use leasehold_core::{Clock, Error, ErrorKind, Guard, GuardMode, LockKey, LockOptions, LockerExt, RwLockerExt, Wait};
use peak_alloc::PeakAlloc;
use tokio::runtime::Handle;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::resource::Resource;
use crate::locks::{Locks, TaskLocks};
use crate::setups::Setup;
use crate::wire::{Footprint, Orders, Reply, Request, Soak};

/// Counts what this process has allocated.
#[global_allocator]
static HEAP: PeakAlloc = PeakAlloc;

/// So many tasks at a time.
const TASKS: u64 = 64;

/// What grows once, such as a pool, has grown after so large a part of the work.
const WARM_UP: u64 = 20;

/// After the last release everything ends that ends by itself.
const SETTLES: Duration = Duration::from_secs(4);

/// One key in so many is read, where there are readers.
pub(crate) const READ: u64 = 4;

/// How long a wait lasts until it is given up. The first ones reach the store on a busy machine, too, and open what waits need.
const GIVEN_UP_AFTER: Duration = Duration::from_millis(2);
const FIRST_GIVEN_UP_AFTER: Duration = Duration::from_millis(300);

/// Does a small part of the work and then the rest, first keys and then waits, and looks at itself in between.
pub(super) async fn run(setup: &Setup, orders: &Orders, soak: Soak) -> Result<(), String> {
    let connect = || async { (setup.connect)(&orders.url).await.map_err(|error| error.to_string()) };
    // Waits for what another locker holds go to the store, and those for one's own holder do not.
    let (locks, holders) = (Arc::new(connect().await?), connect().await?);
    let mut runner = Resource::connect(orders.resource).await.map_err(|error| error.to_string())?;
    let limit = Duration::from_secs(soak.seconds);
    // Short, because the release of a claim that comes late is repeated for as long as its lease.
    let ttl = Duration::from_millis(orders.ttl_ms);
    let keys = use_once((&locks, ttl), "warm", soak.keys / WARM_UP, limit / 4).await?;
    let cancelled = give_up((&locks, ttl), &holders, soak.cancelled / WARM_UP, FIRST_GIVEN_UP_AFTER, limit / 4).await?;
    tell(&mut runner, keys, cancelled).await;
    let keys = use_once((&locks, ttl), "once", soak.keys, limit).await?;
    tell(&mut runner, keys, 0).await;
    let cancelled = give_up((&locks, ttl), &holders, soak.cancelled, GIVEN_UP_AFTER, limit / 4).await?;
    tell(&mut runner, 0, cancelled).await;
    locks.close().await;
    holders.close().await;
    Ok(())
}

/// Tells what this process has of its machine, and waits until the runner has looked at the store.
async fn tell(runner: &mut Resource, keys: u64, cancelled: u64) {
    sleep(SETTLES).await;
    runner.ask(&Request::Footprint { footprint: footprint(), keys, cancelled }).await;
    // Without a runner, nobody waits for what comes next.
    while let Some(Reply::Nothing) = runner.ask(&Request::Looked {}).await {
        sleep(Duration::from_millis(50)).await;
    }
}

/// Takes and releases so many keys, as far as time allows.
async fn use_once(
    (locks, ttl): (&Locks, Duration),
    part: &'static str,
    keys: u64,
    limit: Duration,
) -> Result<u64, String> {
    let (clock, next) = (Clock::system(), Arc::new(AtomicU64::new(0)));
    let end = clock.now().plus(limit);
    let mut tasks = JoinSet::new();
    for _ in 0..TASKS {
        let (locks, next, clock) = (locks.of_task(), Arc::clone(&next), clock.clone());
        tasks.spawn(async move {
            let options = LockOptions::new().ttl(ttl).wait(Wait::UpTo(Duration::from_secs(20)));
            let mut used = 0;
            while clock.now() < end {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= keys {
                    break;
                }
                let key = LockKey::new(format!("{part}/{number}")).map_err(|error| error.to_string())?;
                if let Some(readers) = locks.readers.as_ref().filter(|_| number.is_multiple_of(READ)) {
                    released(readers.acquire_read(&key, &options)).await?;
                } else {
                    released(locks.locker.acquire(&key, &options)).await?;
                }
                used += 1;
            }
            Ok::<u64, String>(used)
        });
    }
    let mut used = 0;
    while let Some(task) = tasks.join_next().await {
        used += task.map_err(|error| error.to_string())??;
    }
    Ok(used)
}

/// Takes a key and releases it. A store that is late for once, on a busy machine, ends no soak.
async fn released<M: GuardMode>(
    call: impl Future<Output = leasehold_core::Result<Option<Guard<M>>>>,
) -> Result<(), String> {
    let is_late =
        |error: &Error| matches!(error.kind(), ErrorKind::Indeterminate | ErrorKind::Unavailable | ErrorKind::Lost(_));
    let outcome = match call.await {
        Ok(Some(guard)) => guard.release().await.map(drop),
        Ok(None) => return Err("a key is held, although nobody else asks for it".to_owned()),
        Err(error) => Err(error),
    };
    outcome.or_else(|error| if is_late(&error) { Ok(()) } else { Err(error.to_string()) })
}

/// Waits so often for a key that is held, as far as time allows, and gives up.
async fn give_up(
    (locks, ttl): (&Locks, Duration),
    holders: &Locks,
    times: u64,
    after: Duration,
    limit: Duration,
) -> Result<u64, String> {
    let (key, clock) = (LockKey::new("held").map_err(|error| error.to_string())?, Clock::system());
    let holder = holders.of_task();
    let held = holder.locker.acquire(&key, &LockOptions::new()).await.map_err(|error| error.to_string())?;
    let held = held.ok_or("the key of the soak is held")?;
    let end = clock.now().plus(limit);
    let mut given_up = 0;
    // Two tasks, and so two sessions: a session does not wait for itself.
    let others: Vec<TaskLocks> = (0..TASKS).map(|_| locks.of_task()).collect();
    while given_up < times && clock.now() < end {
        let options = LockOptions::new().ttl(ttl);
        let waits = others.iter().map(|other| timeout(after, other.locker.acquire(&key, &options)));
        let ended = futures::future::join_all(waits).await;
        given_up += ended.iter().filter(|wait| wait.is_err()).count() as u64;
    }
    held.release().await.map_err(|error| error.to_string())?;
    Ok(given_up)
}

/// What this process has of its machine.
fn footprint() -> Footprint {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:")?.split_whitespace().next());
    let kilobytes: u64 = resident.and_then(|kilobytes| kilobytes.parse().ok()).unwrap_or(0);
    Footprint {
        heap: HEAP.current_usage() as u64,
        resident: kilobytes * 1024,
        descriptors: fs::read_dir("/proc/self/fd").map_or(0, |files| files.count() as u64),
        tasks: Handle::current().metrics().num_alive_tasks() as u64,
    }
}
