//! Writers and readers of several processes on one key: no overlap, and no token twice or backwards.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test fails by panicking")]

use crate::support::{Helper, directory, patient, say, token};
use leasehold_file::{FileLocks, LockKey, LockerExt, Result, RwLockerExt};
use leasehold_testkit::{shows_nothing, test, tokens_grow_although_all_is_forgotten};
use rustix::time::{ClockId, clock_gettime};

const PROCESSES: usize = 8;
const EACH: usize = 50;

/// One grant, in nanoseconds of a clock that all processes share.
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

/// What a helper process does; nothing in the tests' own process.
#[test]
async fn helper() {
    let Some((role, directory)) = crate::support::role() else {
        shows_nothing("other tests run it in processes of their own")
    };
    let locks = FileLocks::open(&directory).unwrap();
    let key = LockKey::new("k").unwrap();
    let mut grants = Vec::new();
    for number in 0..EACH {
        let exclusive = number % 2 == 0;
        let called = now();
        let (granted, freed, token) = if exclusive {
            let guard = locks.acquire(&key, &patient()).await.unwrap().expect("they all let go");
            let granted = now();
            tokio::task::yield_now().await;
            (granted, now(), (token(&guard), guard.release().await.unwrap()).0)
        } else {
            let guard = locks.acquire_read(&key, &patient()).await.unwrap().expect("they all let go");
            let granted = now();
            tokio::task::yield_now().await;
            (granted, now(), (token(&guard), guard.release().await.unwrap()).0)
        };
        grants.push(Grant { exclusive, called, granted, freed, token });
        if role == "cleaner" && number % 10 == 0 {
            // What nobody holds may be removed: the next one counts on.
            if let Some(guard) = locks.acquire(&key, &patient()).await.unwrap() {
                std::fs::remove_file(directory.join("leasehold/k.lock")).unwrap();
                drop(guard);
            }
        }
    }
    for Grant { exclusive, called, granted, freed, token } in grants {
        say(&format!("{} {called} {granted} {freed} {token}", u8::from(exclusive)));
    }
}

fn run(roles: [&str; PROCESSES]) -> Vec<Grant> {
    let directory = directory();
    let mut helpers: Vec<_> = roles.iter().map(|role| Helper::start("tokens", role, directory.path())).collect();
    let mut grants = Vec::new();
    for helper in &mut helpers {
        while let Some(line) = helper.hear() {
            let numbers: Vec<u64> = line.split(' ').map(|number| number.parse().unwrap()).collect();
            let [exclusive, called, granted, freed, token] = numbers[..] else { panic!("{line}") };
            grants.push(Grant { exclusive: exclusive == 1, called, granted, freed, token });
        }
    }
    assert_eq!(grants.len(), PROCESSES * EACH);
    grants
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

fn check_overlaps(grants: &[Grant]) {
    for writer in grants.iter().filter(|grant| grant.exclusive) {
        let beside = grants.iter().filter(|other| other.granted < writer.freed && writer.granted < other.freed);
        assert_eq!(beside.count(), 1, "somebody was there beside {writer:?}");
    }
}

#[test]
fn eight_processes_never_overlap_and_no_token_repeats_or_goes_back() {
    let grants = run(["worker"; PROCESSES]);
    check_overlaps(&grants);
    check_tokens(&grants);
    let readers: Vec<_> = grants.iter().filter(|grant| !grant.exclusive).collect();
    let together = readers.iter().any(|one| {
        readers.iter().any(|other| one.token < other.token && other.granted < one.freed && one.granted < other.freed)
    });
    println!("readers were {}together", if together { "" } else { "never " });
}

#[test]
fn no_token_repeats_or_goes_back_while_the_lock_file_is_removed() {
    let mut roles = ["worker"; PROCESSES];
    roles[0] = "cleaner";
    roles[1] = "cleaner";
    check_tokens(&run(roles));
}

#[test]
fn readers_that_count_at_once_never_count_to_the_same() {
    const THREADS: usize = 4;
    const READS: usize = 500;
    let directory = directory();
    let path = directory.path();
    let reads = || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let (locks, key) = (FileLocks::open(path).unwrap(), LockKey::new("k").unwrap());
        runtime.block_on(async {
            let mut grants = Vec::new();
            for _ in 0..READS {
                let called = now();
                let guard = locks.acquire_read(&key, &patient()).await.unwrap().expect("there are readers only");
                grants.push(Grant { exclusive: false, called, granted: now(), freed: now(), token: token(&guard) });
                let _ = guard.release().await.unwrap();
            }
            grants
        })
    };
    let grants: Vec<Grant> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(reads)).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(grants.len(), THREADS * READS);
    check_tokens(&grants);
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
        std::fs::remove_dir_all(directory.path().join("leasehold")).unwrap();
        FileLocks::open(directory.path())?.lock("k").await.map(|guard| guard.fencing_token())
    };
    tokens_grow_although_all_is_forgotten(grant, forgets).await
}
