use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use leasehold_core::{Notification, Subscription, jittered};
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use super::lock::{AdvisoryLock, State};

/// A subscription to one key: it notifies when the advisory lock is held here. While it is, and the key is held all the
/// same, it asks for another claim again and again; also when the lock was given up with a grant. Who waits here then is served
/// sooner than from another place in the queue (the bench's `MH8`).
pub(super) struct AdvisorySubscription {
    lock: Arc<AdvisoryLock>,
    closed: watch::Receiver<bool>,
    next: Option<Instant>,
    pause: Duration,
}

/// The shortest and the longest pause between two claims of a key whose holder did not come through the queue.
const PAUSES: [Duration; 2] = [Duration::from_millis(2), Duration::from_millis(50)];

impl AdvisorySubscription {
    pub(super) fn of(lock: Arc<AdvisoryLock>, closed: watch::Receiver<bool>) -> Self {
        Self { lock, closed, next: None, pause: PAUSES[0] }
    }

    async fn turn(&mut self) -> Notification {
        let mut states = self.lock.states();
        let state = states.wait_for(|state| *state != State::WaitedFor).await.map(|state| *state);
        // A broken lock notifies no more. It must not ask for claims again and again: the engine may subscribe anew.
        if !matches!(state, Ok(State::Held { .. })) {
            return Notification::Ended;
        }
        if let Some(next) = self.next {
            sleep_until(next).await;
        }
        self.next = Some(Instant::now() + jittered(self.pause, 0.5..=1.0));
        self.pause = (self.pause * 2).min(PAUSES[1]);
        Notification::Freed
    }
}

#[async_trait]
impl Subscription for AdvisorySubscription {
    async fn next(&mut self) -> Notification {
        let mut closed = self.closed.clone();
        tokio::select! {
            biased;
            // Or the queue is gone.
            _ = closed.wait_for(|closed| *closed) => Notification::Ended,
            told = self.turn() => told,
        }
    }
}
