use std::time::Duration;

use futures::future::join_all;
use tokio::time::{sleep, timeout};

use super::silenced::{LONG, MOMENT, Silenced, take};
use crate::{Clock, LockKey, LockOptions, Locker, LockerExt, Wait};

const GIVEN_BACK: &str = "given back";

impl<L: Locker + Clone + 'static> Silenced<L> {
    /// A `try` on a silent server is told so after about what it takes alone, and not after a lease: it waits neither for a lease that its own
    /// session gives back, nor for the claims of other callers, of whom some have left.
    ///
    /// # Panics
    /// If one of them waits for longer, or is told anything else.
    pub async fn tries_are_answered(&self, silence: impl FnOnce()) {
        let ours = take(&self.ours, GIVEN_BACK, LONG).await;
        let _theirs = take(&self.theirs, "theirs", LONG).await;
        silence();
        // The second has to connect anew.
        let alone = fails(&self.beside, "alone").await.max(fails(&self.beside, "alone").await);
        drop(ours);
        let behind_release = fails(&self.ours, GIVEN_BACK).await;
        let crowds = join_all([GIVEN_BACK, "theirs", "free"].map(|key| self.crowd(key)));
        let tries = join_all([GIVEN_BACK, "theirs", "free"].map(|key| self.tries(key)));
        let (tries, _) = tokio::join!(tries, crowds);
        let mut tries = tries.concat();
        tries.push(behind_release);
        for took in tries {
            assert!(took < alone * 3 + MOMENT * 8, "alone {alone:?}, in a crowd {took:?}");
        }
    }

    /// How long tries of a key take that begin at several moments.
    async fn tries(&self, key: &str) -> Vec<Duration> {
        let moments = [Duration::ZERO, MOMENT / 3, MOMENT];
        join_all(moments.map(|moment| async move {
            sleep(moment).await;
            fails(&self.ours, key).await
        }))
        .await
    }

    /// Callers who wait for a key, and leave one after the other.
    async fn crowd(&self, key: &str) {
        let key = LockKey::new(key).expect("a key");
        let waits = [60, 120, 250, 500, 750, 1000, 1500, 2500].map(|limit| {
            let (locks, key) = (self.ours.clone(), key.clone());
            let options = LockOptions::new().wait(Wait::UpTo(Duration::from_millis(limit)));
            tokio::spawn(async move { locks.acquire(&key, &options).await.map(drop) })
        });
        join_all(waits).await;
    }
}

/// How long a try takes that fails.
async fn fails<L: Locker>(locks: &L, key: &str) -> Duration {
    let (clock, key) = (Clock::system(), LockKey::new(key).expect("a key"));
    let began = clock.now();
    let options = LockOptions::new().wait(Wait::Never);
    let tried = timeout(LONG / 60, locks.acquire(&key, &options)).await;
    let tried = tried.unwrap_or_else(|_| panic!("a try of {key} is not answered"));
    // What was given back in the silence is held as far as anybody knows.
    let held = key.as_str() == GIVEN_BACK && matches!(tried, Ok(None));
    assert!(held || tried.is_err(), "a silent server was heard: {key}: {tried:?}");
    clock.now().since(began)
}
