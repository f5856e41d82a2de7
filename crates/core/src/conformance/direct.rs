//! The backend of a client without its engine.

use std::fmt;
use std::time::Duration;

use async_trait::async_trait;

use super::faults::Faulty;
use crate::{
    Attempt, Backend, Claim, Clock, Engine, Error, ErrorKind, GrantRef, LeaseStatus, LockKey, Renewal, Result,
    Subscription,
};

/// The time for a direct call of the backend. Long, because that time is not what a case checks.
pub(crate) const WITHIN: Duration = Duration::from_secs(10);

/// Direct calls of the backend, without the engine.
#[async_trait]
pub trait Store: fmt::Debug + Send + Sync {
    /// The backend itself. Its errors name the step and the key.
    fn steps(&self) -> &dyn Backend;
    /// See [`Engine::close`].
    async fn close(&self);

    /// See [`Backend::try_acquire`]. Asks again while the store has granted the key as often as its clock allows.
    async fn try_acquire(&self, claim: &Claim) -> Result<Attempt> {
        let clock = Clock::system();
        let limit = clock.now().plus(WITHIN);
        loop {
            match self.steps().try_acquire(claim).await {
                Ok(ahead) if ahead == Attempt::AHEAD_OF_THE_CLOCK && clock.now() < limit => {
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
                answer => return answer,
            }
        }
    }

    /// See [`Backend::renew`].
    async fn renew(&self, grant: &GrantRef, ttl: Duration) -> Result<LeaseStatus> {
        let answer = self.steps().renew(&[Renewal { grant: grant.clone(), ttl }], WITHIN).await.pop();
        answer.unwrap_or_else(|| Err(Error::new(ErrorKind::Indeterminate, "renew").detail("no answer in the batch")))
    }

    /// See [`Backend::release`].
    async fn release(&self, grant: &GrantRef) -> Result<LeaseStatus> {
        self.steps().release(grant).await
    }

    /// See [`crate::Notifications::subscribe`].
    async fn subscribe(&self, key: &LockKey) -> Result<Box<dyn Subscription>> {
        match self.steps().notifications() {
            Some(notifications) => notifications.subscribe(key).await,
            None => Err(Error::new(ErrorKind::Unsupported, "subscribe").detail("wake-up is claimed and not there")),
        }
    }
}

#[async_trait]
impl<B: Backend> Store for Engine<Faulty<B>> {
    fn steps(&self) -> &dyn Backend {
        self.backend()
    }

    async fn close(&self) {
        Engine::close(self).await;
    }
}
