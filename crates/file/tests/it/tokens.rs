//! Writers and readers of several lockers on one key: no overlap, and no token twice or backwards.

use std::path::Path;

use crate::support::{directory, file, key, patient, runtime, token};
use leasehold_file::{FileLocks, Guard, LockerExt, Result, RwLockerExt, core::GuardMode};
use leasehold_testkit::{test, tokens_grow_although_all_is_forgotten};
use rustix::time::{ClockId, clock_gettime};

/// One grant, in nanoseconds of a clock that all threads share.
#[derive(Clone, Copy, Debug)]
struct Grant {
    exclusive: bool,
    called: u64,
    granted: u64,
    freed: u64,
    token: u64,
}

fn now() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    u64::try_from(now.tv_sec).unwrap() * 1_000_000_000 + u64::try_from(now.tv_nsec).unwrap()
}

/// What a thread does. Its locker has open files of its own, as in a process of its own.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Role {
    /// Writes and reads in turn.
    Worker,
    /// Does so, and removes the lock file now and then while it holds it: what nobody else holds may be removed.
    Cleaner,
    Reader,
}

async fn play(role: Role, times: usize, directory: &Path) -> Vec<Grant> {
    let (locks, key) = (FileLocks::open(directory).unwrap(), key("k"));
    let mut grants = Vec::new();
    for number in 0..times {
        let exclusive = role != Role::Reader && number % 2 == 0;
        let called = now();
        let [granted, freed, token] = if exclusive {
            hold(locks.acquire(&key, &patient()).await.unwrap().expect("they all let go")).await
        } else {
            hold(locks.acquire_read(&key, &patient()).await.unwrap().expect("they all let go")).await
        };
        grants.push(Grant { exclusive, called, granted, freed, token });
        if role == Role::Cleaner && number % 10 == 0 {
            let guard = locks.acquire(&key, &patient()).await.unwrap();
            std::fs::remove_file(directory.join("leasehold/k.lock")).unwrap();
            drop(guard);
        }
    }
    grants
}

/// When it was granted, when it is freed, and its token.
async fn hold<M: GuardMode>(guard: Guard<M>) -> [u64; 3] {
    let granted = now();
    tokio::task::yield_now().await;
    let (freed, token) = (now(), token(&guard));
    let _ = guard.release().await.unwrap();
    [granted, freed, token]
}

fn run<const THREADS: usize>(roles: [Role; THREADS], times: usize) -> Vec<Grant> {
    let directory = directory();
    let play = |role| runtime().block_on(play(role, times, directory.path()));
    std::thread::scope(|scope| {
        let threads = roles.map(|role| scope.spawn(move || play(role)));
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    })
}

fn check_tokens(grants: &[Grant]) {
    let mut by_token = grants.to_vec();
    by_token.sort_by_key(|grant| grant.token);
    for pair in by_token.windows(2) {
        assert_ne!(pair[0].token, pair[1].token, "{pair:?}");
    }
    // From the largest token down: nobody with a larger one may have returned before this one called.
    let mut earliest_return = u64::MAX;
    for grant in by_token.iter().rev() {
        assert!(earliest_return >= grant.called, "a larger token was granted before {grant:?} was asked for");
        earliest_return = earliest_return.min(grant.granted);
    }
}

#[test]
fn nobody_overlaps_and_no_token_goes_back_while_the_lock_file_is_removed_or_readers_count_at_once() {
    use Role::{Cleaner, Reader, Worker};
    let grants = run([Cleaner, Cleaner, Worker, Worker, Worker, Worker, Worker, Worker], 50);
    check_tokens(&grants);
    for writer in grants.iter().filter(|grant| grant.exclusive) {
        let beside = grants.iter().filter(|other| other.granted < writer.freed && writer.granted < other.freed);
        assert_eq!(beside.count(), 1, "somebody was there beside {writer:?}");
    }
    check_tokens(&run([Reader; 4], 500));
}

#[test]
async fn tokens_of_a_busy_key_grow_when_its_files_are_removed() -> Result<()> {
    let directory = directory();
    let locks = FileLocks::open(directory.path())?;
    let grant = async || {
        let guard = locks.lock("k").await?;
        let token = guard.fencing_token();
        guard.release().await.map(|_| token)
    };
    let forgets = async || {
        std::fs::remove_dir_all(file(&directory, "")).unwrap();
        FileLocks::open(directory.path())?.lock("k").await.map(|guard| guard.fencing_token())
    };
    tokens_grow_although_all_is_forgotten(grant, forgets).await
}
