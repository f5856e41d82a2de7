use std::time::Duration;

use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

use crate::{ErrorKind, LockGuard, LockKey, LockOptions, Locker, LockerExt, LossReason, Wait};

/// Longer than any test: whatever ends in time did not end with a lease.
pub(super) const LONG: Duration = Duration::from_secs(3600);

/// A lease of which a renewal is under way while all this goes on.
const SHORT: Duration = Duration::from_secs(2);

/// A moment for what was begun to get as far as it gets.
pub(super) const MOMENT: Duration = Duration::from_millis(300);

/// Lockers on a server that falls silent.
#[derive(Debug)]
pub struct Silenced<L> {
    /// What is closed.
    pub ours: L,
    /// The same, for another who waits: a session of its own where a session may take a key again.
    pub beside: L,
    /// Another client.
    pub theirs: L,
    /// [`Backend::answers_within`](crate::Backend::answers_within).
    pub answers_within: Duration,
}

impl<L: Locker + Clone + 'static> Silenced<L> {
    /// Closing ends although the server is silent, with locks that are held, waiters, a renewal and a queue of releases.
    ///
    /// # Panics
    /// If it does not end soon enough, or somebody is not told.
    pub async fn closing_ends(&self, silence: impl FnOnce(), close: impl Future<Output = ()>) {
        // What the documentation says, ten times, for machines that are busy.
        let limit = self.answers_within * 30;
        let mut held = Vec::new();
        for number in 0..4 {
            held.push(take(&self.ours, &format!("held/{number}"), LONG).await);
        }
        let mut dropped = Vec::new();
        for number in 0..20 {
            dropped.push(take(&self.ours, &format!("dropped/{number}"), LONG).await);
        }
        let renewed = take(&self.ours, "renewed", SHORT).await;
        let _theirs = take(&self.theirs, "there", LONG).await;
        let mut waiters = vec![wait(&self.ours, "there"), wait(&self.beside, "there"), wait(&self.beside, "held/0")];
        sleep(MOMENT).await;
        silence();
        waiters.push(wait(&self.ours, "asked for in the silence"));
        drop(dropped);
        sleep(MOMENT + SHORT / 3).await;
        timeout(limit, close).await.unwrap_or_else(|_| panic!("closing does not end within {limit:?}"));
        for waiter in waiters {
            let told = timeout(limit, waiter).await.unwrap_or_else(|_| panic!("a waiter still waits"));
            let told = told.unwrap_or_else(|error| panic!("{error}"));
            assert!(told.as_ref().is_err_and(|error| error.kind() == ErrorKind::Closed), "a waiter was told {told:?}");
        }
        assert!(held.iter().all(|guard| guard.loss() == Some(LossReason::Shutdown)), "a holder was not told: {held:?}");
        assert!(!renewed.is_held());
        let refused = self.ours.acquire(&key("held/0"), &LockOptions::new()).await;
        assert!(refused.as_ref().is_err_and(|error| error.kind() == ErrorKind::Closed), "it goes on: {refused:?}");
    }
}

fn key(name: &str) -> LockKey {
    LockKey::new(name).unwrap_or_else(|error| panic!("{error}"))
}

pub(super) async fn take(locks: &impl Locker, name: &str, lease: Duration) -> LockGuard {
    let taken = locks.acquire(&key(name), &LockOptions::new().ttl(lease)).await;
    taken.unwrap_or_else(|error| panic!("{name}: {error}")).unwrap_or_else(|| panic!("{name} is held"))
}

fn wait<L: Locker + Clone + 'static>(locks: &L, name: &str) -> JoinHandle<crate::Result<Option<LockGuard>>> {
    let (locks, key) = (locks.clone(), key(name));
    tokio::spawn(async move { locks.acquire(&key, &LockOptions::new().wait(Wait::Forever)).await })
}
