//! Permits of semaphores, and elections: what is made of locks. A permit is a lock on the key of its slot, a leader holds the
//! lock on the name of the election, and both are written down and checked as such.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use leasehold_chaos::history::{Mode, now};
use leasehold_core::{Election, GuardHandle, Semaphore};
use rand::Rng;
use tokio::time::{sleep, timeout};

use super::hold::Held;
use super::work::Task;

/// The permits of each semaphore.
const PERMITS: usize = 3;

/// The share of those who want two permits, in percent.
const WANT_TWO: u32 = 20;

/// The name of the election.
const LEADER: &str = "leader";

/// Writes down that the lock is given back also where the work is dropped by a loss or a shutdown.
struct Leading<'f> {
    led: Option<Held<()>>,
    free: &'f AtomicU64,
}

impl Drop for Leading<'_> {
    fn drop(&mut self) {
        if let Some(led) = self.led.take() {
            self.free.store(now(), Ordering::Relaxed);
            led.drop();
        }
    }
}

impl Task {
    /// Works under a permit, or under two. Who gets none writes nothing down: no slot is known.
    pub(super) async fn work_under_permits(&mut self) {
        let key = format!("permits/{}", self.random.random_range(0..2));
        let semaphore = Semaphore::new(self.locks.locker(), key.as_str(), PERMITS).expect("a valid key");
        let (wish, time) = (self.wish(&key), self.moment());
        let count = if self.random.random_range(0..100) < WANT_TWO { 2 } else { 1 };
        let (called, options) = (now(), wish.options());
        let acquiring = semaphore.acquire_many(count, &options);
        let granted = match wish.cancelled_after {
            Some(limit) => timeout(limit, acquiring).await.ok(),
            None => Some(acquiring.await),
        };
        let Some(Ok(Some(permits))) = granted else { return };
        let mut held = Vec::new();
        for permit in permits {
            let op = self.begin();
            op.called_at(called, permit.key().as_str(), Mode::Exclusive, (None, wish.session, false));
            let handle = permit.handle();
            held.push(Held::granted((permit, handle), op, wish.ttl));
        }
        while let Some(mut permit) = held.pop() {
            if permit.work(time).await {
                self.finish(permit).await;
            }
        }
    }

    /// Leads, mostly for longer than a lease, and again after each loss, until the work of one term is done, or a shutdown comes.
    /// The term is the token.
    pub(super) async fn lead(&mut self) {
        let ttl = self.orders.ttl_ms;
        let wish = self.wish(LEADER);
        let time = Duration::from_millis(self.random.random_range(ttl / 2..ttl * 4));
        let shutdown = Duration::from_millis(self.random.random_range(ttl..ttl * 6));
        let candidate = format!("client {}", self.orders.client);
        let election = Election::new(self.locks.locker(), LEADER, &candidate).expect("valid names");
        let election = election.with_options(wish.options());
        // The campaign for a term begins after this client led last.
        let (free, task) = (AtomicU64::new(now()), &*self);
        let work = |term: GuardHandle| async {
            let op = task.begin();
            op.called_at(free.load(Ordering::Relaxed), LEADER, Mode::Exclusive, (None, wish.session, false));
            let led = Held::granted(((), term), op, wish.ttl);
            let mut leading = Leading { led: Some(led), free: &free };
            if let Some(led) = &mut leading.led {
                led.work(time).await;
            }
        };
        // What it failed with is no matter: each grant is in the history.
        let _ = election.run_while_leader_until(sleep(shutdown), work).await;
    }
}
