//! A store that queues its waiters itself.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use leasehold_core::{
    Attempt, Backend, Capabilities, Capability, Claim, Cursor, FencingToken, GrantRef, Holders, LeaseStatus, LockKey,
    MemoryBackend, Notification, Notifications, Page, Renewal, Result, Subscription,
};
use tokio::sync::broadcast;

pub(crate) const FIRST_LEASE: Duration = Duration::from_secs(3);
pub(crate) const ASK_AGAIN: Duration = Duration::from_secs(1);

/// The memory store with a queue in front of it.
#[derive(Clone, Debug)]
pub(crate) struct Queueing {
    pub(crate) memory: MemoryBackend,
    pub(crate) state: Arc<Mutex<State>>,
    pub(crate) hints: Arc<Mutex<broadcast::Sender<Notification>>>,
}

#[derive(Debug, Default)]
pub(crate) struct State {
    pub(crate) queue: VecDeque<Claim>,
    /// Hints are lost.
    pub(crate) deaf: bool,
}

impl Queueing {
    pub(crate) fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    /// Ends all listeners.
    pub(crate) fn breaks(&self) {
        *self.hints.lock().unwrap() = broadcast::Sender::new(16);
    }

    pub(crate) fn is_listened_to(&self) -> bool {
        self.hints.lock().unwrap().receiver_count() > 0
    }

    async fn grant_next(&self) {
        let Some(next) = self.state().queue.pop_front() else { return };
        let claim = Claim { ttl: FIRST_LEASE, ..next };
        let Attempt::Granted { epoch } = self.memory.try_acquire(&claim).await.unwrap() else { panic!("not free") };
        if !self.state().deaf {
            let _ = self.hints.lock().unwrap().send(Notification::Granted { owner: claim.owner, epoch });
        }
    }
}

#[async_trait]
impl Backend for Queueing {
    fn capabilities(&self) -> Capabilities {
        self.memory.capabilities().with(Capability::Queue)
    }
    async fn try_acquire(&self, claim: &Claim) -> Result<Attempt> {
        let attempt = self.memory.try_acquire(claim).await?;
        let holders = self.memory.inspect(&claim.key).await?.holders;
        let epoch_of_holder = holders.first().and_then(|holder| holder.token).map(FencingToken::epoch);
        if !claim.waits || !matches!(attempt, Attempt::Busy { .. }) {
            return Ok(attempt);
        }
        let mut state = self.state();
        if !state.queue.iter().any(|queued| queued.owner == claim.owner) {
            state.queue.push_back(claim.clone());
        }
        Ok(Attempt::Queued {
            epoch_of_holder,
            latest_epoch: None,
            retry_in: ASK_AGAIN,
            lease: FIRST_LEASE,
            notifies: true,
        })
    }
    async fn renew(&self, renewals: &[Renewal], within: Duration) -> Vec<Result<LeaseStatus>> {
        self.memory.renew(renewals, within).await
    }
    async fn release(&self, grant: &GrantRef) -> Result<LeaseStatus> {
        self.state().queue.retain(|queued| queued.owner != grant.owner);
        let held = self.memory.release(grant).await?;
        if held == LeaseStatus::Held {
            self.grant_next().await;
        }
        Ok(held)
    }
    async fn inspect(&self, key: &LockKey) -> Result<Holders> {
        self.memory.inspect(key).await
    }
    async fn list(&self, prefix: &str, after: Option<&Cursor>) -> Result<Page> {
        self.memory.list(prefix, after).await
    }
    async fn force_release(&self, key: &LockKey, only: Option<u64>) -> Result<Holders> {
        self.memory.force_release(key, only).await
    }
    fn notifications(&self) -> Option<&dyn Notifications> {
        Some(self)
    }
}

#[async_trait]
impl Notifications for Queueing {
    async fn subscribe(&self, _key: &LockKey) -> Result<Box<dyn Subscription>> {
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
