//! A long run without faults: very many keys, each used once, and very many waits that are given up. What has grown in this
//! process, which is the client, and in the store?

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use leasehold_core::{
    Clock, Error, ErrorKind, Guard, GuardMode, LockKey, LockOptions, LockerExt, Result as Locked, RwLockerExt, Wait,
};
use peak_alloc::PeakAlloc;
use serde::Serialize;
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use crate::arguments::Plan;
use crate::locks::Locks;
use crate::report::of_each;
use crate::setups::{Setup, Stays};
use crate::stores::{Library, Store, size};

/// Counts what this process has allocated.
#[global_allocator]
static HEAP: PeakAlloc = PeakAlloc;

/// What a soak is to do.
const KEYS: u64 = 1_000_000;
const CANCELLED: u64 = 10_000;

/// One key in so many is read, where there are readers.
const READ: u64 = 4;

/// So many tasks at a time.
const TASKS: u64 = 64;

/// What grows once, such as a pool, has grown after so large a part of the work.
const WARM_UP: u64 = 20;

/// After the last release everything ends that ends by itself.
const SETTLES: Duration = Duration::from_secs(4);

/// How long a wait lasts until it is given up. The first ones reach the store on a busy machine, too, and open what waits need.
const GIVEN_UP_AFTER: Duration = Duration::from_millis(2);
const FIRST_GIVEN_UP_AFTER: Duration = Duration::from_millis(300);

/// What is counted, and how much more of it there may be after so many keys or waits, of each of which this stays. Pools and buffers
/// grow once, however little was done.
fn measures(times: u64, sessions: u64, stays: Stays) -> [(&'static str, u64); 7] {
    let Stays { entries, more_of_readers, bytes } = stays;
    [
        // Whatever is kept of a key or a wait is larger than a byte; and a client keeps something of a session, or of a statement.
        ("heap of the client, bytes", (64 << 10) + times + sessions * (32 << 10)),
        // Once, on a busy machine, much was under way at a time; and an allocator leaves holes.
        ("memory of the client, bytes", (16 << 20) + times * 16),
        ("descriptors of the client", 8),
        ("tasks of the client", 8),
        // Keys, rows and files, on all servers; and what these have for them.
        ("entries of the store", 64 + times * entries + times / READ * more_of_readers),
        ("data of the store, bytes", (8 << 20) + times * bytes),
        // Connections, channels, prepared statements, scripts.
        ("sessions of the store", 1000),
    ]
}

const SESSIONS: usize = 6;

/// More connections and statements are no pool that is filled later than others.
const MOST_SESSIONS: u64 = 64;

/// How much there is of each measure.
type Counts = [u64; 7];

/// What a soak found.
#[derive(Debug, Default, Serialize)]
struct Found {
    backend: String,
    keys: u64,
    cancelled: u64,
    /// A line for each measure.
    growth: Vec<String>,
    failures: Vec<String>,
}

impl Found {
    /// Notes what has grown with so many keys or waits, of each of which this stays; and what of that is more than may be.
    fn judge(&mut self, what: &str, times: u64, [before, after]: [Counts; 2], stays: Stays) {
        let sessions = after[SESSIONS].saturating_sub(before[SESSIONS]).min(MOST_SESSIONS);
        for (at, (measure, most)) in measures(times, sessions, stays).into_iter().enumerate() {
            let (before, after) = (before[at], after[at]);
            let line = format!("{measure:26} {before:>11} > {after:>11} with {times:>7} {what}");
            if after > before + most {
                self.failures.push(format!("{line}; {most} more are the most"));
            }
            self.growth.push(line);
        }
    }
}

/// Looks at what grows, on one setup after the other, for so long each at most. True: nothing that must not.
pub(crate) fn all(plan: &Plan, limit: Duration) -> Result<bool, String> {
    let what = format!("soak, {} s at most", limit.as_secs());
    let one = |setup: &'static Setup, _: &Path| {
        let folder = tempfile::tempdir().map_err(|error| error.to_string());
        let found = folder.and_then(|folder| one(setup, limit, folder.path()));
        found.unwrap_or_else(|why| Found { backend: setup.name.to_owned(), failures: vec![why], ..Found::default() })
    };
    of_each(plan, (&what, "soak.json"), one, |found| &found.failures, table)
}

fn table(all: &[Found]) -> String {
    let lines = all.iter().map(|found| {
        let Found { backend, keys, cancelled, growth, .. } = found;
        format!("{backend}: {keys} keys, {cancelled} waits given up\n  {}\n", growth.join("\n  "))
    });
    lines.collect()
}

/// Does a small part of the work and then the rest, first keys and then waits, and counts in between.
fn one(setup: &Setup, limit: Duration, folder: &Path) -> Result<Found, String> {
    let runtime = Builder::new_current_thread().enable_all().build().map_err(|error| error.to_string())?;
    let store = (setup.start)(&Library::build(folder)?, &setup.kind)?;
    setup.repair(&store.direct, &runtime)?;
    let connect = || runtime.block_on(setup.connect(&store.direct)).map_err(|error| error.to_string());
    // Waits for what another locker holds go to the store, and those for one's own holder do not.
    let (locks, holders, ttl) = (connect()?, connect()?, setup.ttl);
    let takes = |part, keys, limit| runtime.block_on(use_once(&locks, ttl, (part, keys, limit)));
    let waits = |times, after| runtime.block_on(give_up((&locks, ttl), &holders, (times, after, limit / 4)));
    takes("warm", KEYS / WARM_UP, limit / 4)?;
    waits(CANCELLED / WARM_UP, FIRST_GIVEN_UP_AFTER)?;
    let warm = counts(&store, &runtime)?;
    let keys = takes("once", KEYS, limit)?;
    let used = counts(&store, &runtime)?;
    let cancelled = waits(CANCELLED, GIVEN_UP_AFTER)?;
    let gave_up = counts(&store, &runtime)?;
    runtime.block_on(async {
        locks.close().await;
        holders.close().await;
    });
    let mut found = Found { backend: setup.name.to_owned(), keys, cancelled, ..Found::default() };
    found.judge("keys", keys, [warm, used], setup.stays);
    found.judge("waits", cancelled, [used, gave_up], Stays::default());
    Ok(found)
}

/// What this process has of its machine, and what the store has.
fn counts(store: &Store, runtime: &Runtime) -> Result<Counts, String> {
    runtime.block_on(async { sleep(SETTLES).await });
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:")?.split_whitespace().next());
    let kilobytes: u64 = resident.and_then(|kilobytes| kilobytes.parse().ok()).unwrap_or(0);
    let heap = HEAP.current_usage() as u64;
    let descriptors = fs::read_dir("/proc/self/fd").map_or(0, |files| files.count() as u64);
    let tasks = runtime.metrics().num_alive_tasks() as u64;
    let size = size(store)?;
    Ok([heap, kilobytes * 1024, descriptors, tasks, size.entries, size.bytes, size.sessions])
}

/// Takes and releases so many keys, as far as time allows.
async fn use_once(
    locks: &Locks,
    ttl: Duration,
    (part, keys, limit): (&'static str, u64, Duration),
) -> Result<u64, String> {
    let (clock, next) = (Clock::system(), Arc::new(AtomicU64::new(0)));
    let end = clock.now().plus(limit);
    let mut tasks = JoinSet::new();
    for _ in 0..TASKS {
        let (locks, next, clock) = (locks.of_task(), Arc::clone(&next), clock.clone());
        tasks.spawn(async move {
            let options = LockOptions::new().ttl(ttl).wait(Wait::UpTo(Duration::from_secs(20)));
            let (readers, mut used) = (locks.rw(), 0);
            while clock.now() < end {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= keys {
                    break;
                }
                let key = LockKey::new(format!("{part}/{number}")).map_err(|error| error.to_string())?;
                if let Some(readers) = readers.as_ref().filter(|_| number.is_multiple_of(READ)) {
                    released(readers.acquire_read(&key, &options)).await?;
                } else {
                    released(locks.acquire(&key, &options)).await?;
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
async fn released<M: GuardMode>(call: impl Future<Output = Locked<Option<Guard<M>>>>) -> Result<(), String> {
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
    (times, after, limit): (u64, Duration, Duration),
) -> Result<u64, String> {
    let (key, clock) = (LockKey::new("held").map_err(|error| error.to_string())?, Clock::system());
    let holder = holders.of_task();
    let held = holder.acquire(&key, &LockOptions::new()).await.map_err(|error| error.to_string())?;
    let held = held.ok_or("the key of the soak is held")?;
    let end = clock.now().plus(limit);
    let (mut given_up, options) = (0, LockOptions::new().ttl(ttl));
    // Many tasks, and so many sessions: a session does not wait for itself.
    let others: Vec<_> = (0..TASKS).map(|_| locks.of_task()).collect();
    while given_up < times && clock.now() < end {
        let waits = others.iter().map(|other| timeout(after, other.acquire(&key, &options)));
        let ended = futures::future::join_all(waits).await;
        given_up += ended.iter().filter(|wait| wait.is_err()).count() as u64;
    }
    held.release().await.map_err(|error| error.to_string())?;
    Ok(given_up)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAP: usize = 0;
    const TASKS: usize = 3;
    const ENTRIES: usize = 4;
    const DATA: usize = 5;

    #[test]
    fn what_is_kept_of_each_key_or_wait_is_a_leak_and_what_grows_once_or_becomes_less_is_none() {
        let stays = Stays { entries: 1, more_of_readers: 2, bytes: 160 };
        for (leaks, measure, what, times, before, more) in [
            (true, HEAP, "keys", 20_000, 900_000_u64, 16 * 20_000),
            (true, HEAP, "waits", 10_000, 900_000, 16 * 10_000),
            (false, HEAP, "keys", 1_000_000, 900_000, 50_000),
            // One in a thousand waits.
            (true, TASKS, "waits", 10_000, 14, 10),
            (false, TASKS, "keys", 1_000_000, 30, -26),
            // A store keeps of a key what the README says, of one in four more, and of a wait nothing.
            (false, ENTRIES, "keys", 1_000_000, 5, 1_500_000),
            (true, ENTRIES, "keys", 1_000_000, 5, 2_000_000),
            (true, ENTRIES, "waits", 10_000, 1_000_000, 10_000),
            (false, DATA, "keys", 1_000_000, 1 << 20, 130 * 1_000_000),
            (true, DATA, "keys", 1_000_000, 1 << 20, 200 * 1_000_000),
        ] {
            let counts = |count| std::array::from_fn(|at| if at == measure { count } else { 0 });
            let mut found = Found::default();
            let grown = [counts(before), counts(before.saturating_add_signed(more))];
            found.judge(what, times, grown, if what == "keys" { stays } else { Stays::default() });
            assert_eq!(found.failures.len(), usize::from(leaks), "{found:?}");
        }
        // A connection that is opened late may take memory.
        let (before, after) = ([0; 7], [400_000, 0, 0, 0, 0, 0, 20]);
        let mut found = Found::default();
        found.judge("keys", 200_000, [before, after], stays);
        assert_eq!(found.failures, [""; 0]);
    }
}
