//! A store that queues its waiters itself.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use leasehold_core::{
    Attempt, Backend, Capabilities, Capability, Claim, Cursor, Error, ErrorKind, FencingToken, GrantRef, Holders,
    LeaseStatus, LockKey, MemoryBackend, Notification, Notifications, OwnerId, Page, Renewal, Result, Subscription,
};
use tokio::sync::broadcast;

use crate::store_queue::key;

pub(crate) const FIRST_LEASE: Duration = Duration::from_secs(3);
pub(crate) const ASK_AGAIN: Duration = Duration::from_secs(1);

/// The memory store with a queue in front of it, and a record of what was asked.
#[derive(Clone, Debug)]
pub(crate) struct Queueing {
    pub(crate) inner: MemoryBackend,
    pub(crate) state: Arc<Mutex<State>>,
    pub(crate) hints: Arc<Mutex<broadcast::Sender<Notification>>>,
}

#[derive(Debug, Default)]
pub(crate) struct State {
    pub(crate) queue: VecDeque<Claim>,
    pub(crate) claims: Vec<OwnerId>,
    pub(crate) renewals: usize,
    /// Hints are lost.
    pub(crate) deaf: bool,
    /// The key is released by force before the next renewal.
    pub(crate) force_before_renewal: bool,
    /// The next listener is refused for the moment.
    pub(crate) unreachable: bool,
    /// How the next claims fail: with `Indeterminate` they are carried out and their answers lost.
    pub(crate) failures: VecDeque<ErrorKind>,
    /// The next claim is carried out and its answer late.
    pub(crate) late: Option<Duration>,
    /// The next release is carried out and its answer late.
    pub(crate) late_release: Option<Duration>,
}

impl Queueing {
    pub(crate) fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    pub(crate) fn tell(&self, hint: Notification) {
        let _ = self.hints.lock().unwrap().send(hint);
    }

    /// Ends all listeners.
    pub(crate) fn breaks(&self) {
        *self.hints.lock().unwrap() = broadcast::Sender::new(16);
    }

    pub(crate) fn is_listened_to(&self) -> bool {
        self.hints.lock().unwrap().receiver_count() > 0
    }

    /// Of who holds the key.
    pub(crate) async fn epoch(&self) -> Option<u64> {
        let holders = self.inner.inspect(&key()).await.unwrap().holders;
        holders.first().and_then(|holder| holder.token).map(FencingToken::epoch)
    }

    pub(crate) async fn grant_next(&self) {
        let Some(next) = self.state().queue.pop_front() else { return };
        let claim = Claim { ttl: FIRST_LEASE, ..next };
        let Attempt::Granted { epoch } = self.inner.try_acquire(&claim).await.unwrap() else { panic!("not free") };
        if !self.state().deaf {
            self.tell(Notification::Granted { owner: claim.owner, epoch });
        }
    }
}

#[async_trait]
impl Backend for Queueing {
    fn capabilities(&self) -> Capabilities {
        self.inner.capabilities().with(Capability::Queue)
    }
    async fn try_acquire(&self, claim: &Claim) -> Result<Attempt> {
        let failure = {
            let mut state = self.state();
            state.claims.push(claim.owner);
            state.failures.pop_front()
        };
        if let Some(kind) = failure.filter(|kind| *kind != ErrorKind::Indeterminate) {
            return Err(Error::new(kind, "acquire"));
        }
        let attempt = self.inner.try_acquire(claim).await?;
        let epoch_of_holder = self.epoch().await;
        let waits = claim.waits && matches!(attempt, Attempt::Busy { .. });
        let late = {
            let mut state = self.state();
            if waits && !state.queue.iter().any(|queued| queued.owner == claim.owner) {
                state.queue.push_back(claim.clone());
            }
            state.late.take()
        };
        if let Some(late) = late {
            tokio::time::sleep(late).await;
        }
        match (failure, waits) {
            (Some(kind), _) => Err(Error::new(kind, "acquire")),
            (None, false) => Ok(attempt),
            (None, true) => Ok(Attempt::Queued {
                epoch_of_holder,
                latest_epoch: None,
                retry_in: ASK_AGAIN,
                lease: FIRST_LEASE,
                notifies: true,
            }),
        }
    }
    async fn renew(&self, renewals: &[Renewal], within: Duration) -> Vec<Result<LeaseStatus>> {
        let force = {
            let mut state = self.state();
            state.renewals += renewals.len();
            std::mem::take(&mut state.force_before_renewal)
        };
        if force {
            self.inner.force_release(&key(), None).await.unwrap();
        }
        self.inner.renew(renewals, within).await
    }
    async fn release(&self, grant: &GrantRef) -> Result<LeaseStatus> {
        self.state().queue.retain(|queued| queued.owner != grant.owner);
        let held = self.inner.release(grant).await?;
        if held == LeaseStatus::Held {
            self.grant_next().await;
        }
        let late = self.state().late_release.take();
        if let Some(late) = late {
            tokio::time::sleep(late).await;
        }
        Ok(held)
    }
    async fn inspect(&self, key: &LockKey) -> Result<Holders> {
        self.inner.inspect(key).await
    }
    async fn list(&self, prefix: &str, after: Option<&Cursor>) -> Result<Page> {
        self.inner.list(prefix, after).await
    }
    async fn force_release(&self, key: &LockKey, only: Option<u64>) -> Result<Holders> {
        self.inner.force_release(key, only).await
    }
    fn notifications(&self) -> Option<&dyn Notifications> {
        Some(self)
    }
}

#[async_trait]
impl Notifications for Queueing {
    async fn subscribe(&self, _key: &LockKey) -> Result<Box<dyn Subscription>> {
        let unreachable = std::mem::take(&mut self.state().unreachable);
        if unreachable {
            return Err(Error::new(ErrorKind::Unavailable, "subscribe"));
        }
        Ok(Box::new(Ear(self.hints.lock().unwrap().subscribe())))
    }
}

struct Ear(broadcast::Receiver<Notification>);

#[async_trait]
impl Subscription for Ear {
    async fn next(&mut self) -> Notification {
        self.0.recv().await.unwrap_or(Notification::Ended)
    }
}
