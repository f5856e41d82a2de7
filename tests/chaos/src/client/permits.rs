//! Permits of semaphores. A permit is a lock on the key of its slot, and is written down and checked as such: that no slot has
//! two holders is that a semaphore has no more holders than slots, and tokens of a slot grow.

use std::sync::Arc;

use leasehold_chaos::history::{Event, Mode};
use leasehold_core::Semaphore;
use rand::Rng;
use tokio::time::timeout;

use super::hold::Held;
use super::work::Task;

/// The permits of each semaphore.
const PERMITS: usize = 3;

/// The share of those who want two permits, in percent.
const WANT_TWO: u32 = 20;

impl Task {
    /// Works under a permit, or under two. Who gets none writes nothing down: no slot is known.
    pub(super) async fn work_under_permits(&mut self) {
        let key = format!("permits/{}", self.random.random_range(0..2));
        let semaphore = Semaphore::new(Arc::clone(&self.locks.locker), key.as_str(), PERMITS).expect("a valid key");
        let (wish, time) = (self.wish(&key), self.moment());
        let count = if self.random.random_range(0..100) < WANT_TWO { 2 } else { 1 };
        let (called, options) = (self.recorder.now(), wish.options());
        let acquiring = semaphore.acquire_many(count, &options);
        let granted = match wish.cancelled_after {
            Some(limit) => timeout(limit, acquiring).await.ok(),
            None => Some(acquiring.await),
        };
        let Some(Ok(Some(permits))) = granted else { return };
        let mut held = Vec::new();
        for permit in permits {
            let (op, key) = (self.begin(), permit.key().as_str().to_owned());
            let event =
                Event::Called { key, mode: Mode::Exclusive, wait_ms: None, session: wish.session, attach: false };
            op.log_at(called, event);
            held.push(Held::granted(permit, op, wish.ttl));
        }
        while let Some(mut permit) = held.pop() {
            if permit.work(time).await {
                self.finish(permit).await;
            }
        }
    }
}
