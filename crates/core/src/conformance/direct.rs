//! The backend of a client without engine and faults. Its errors name the step and the key, as those of the engine do.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use super::faults::Faulty;
use crate::{
    Attempt, Backend, Capabilities, Claim, Clock, Cursor, Engine, Error, ErrorKind, GrantRef, Holders, LeaseStatus,
    LockKey, Notifications, OwnerId, Page, Renewal, Result, SessionId, Subscription,
};

/// The time for a direct call of the backend. Long, because that time is not what a case checks.
pub(crate) const WITHIN: Duration = Duration::from_secs(10);

/// Direct calls of the backend, without engine and faults.
#[async_trait]
pub trait Store: fmt::Debug + Send + Sync {
    /// See [`Backend::try_acquire`]. Asks again while the store has granted the key as often as its clock allows.
    async fn try_acquire(&self, claim: &Claim) -> Result<Attempt>;
    /// See [`Backend::renew`].
    async fn renew(&self, grant: &GrantRef, ttl: Duration) -> Result<LeaseStatus>;
    /// See [`Backend::release`].
    async fn release(&self, grant: &GrantRef) -> Result<LeaseStatus>;
    /// See [`crate::Notifications::subscribe`].
    async fn subscribe(&self, key: &LockKey) -> Result<Box<dyn Subscription>>;
    /// The backend itself. Its errors name the step and the key.
    fn steps(&self) -> &dyn Backend;
    /// See [`Engine::close`].
    async fn close(&self);
}

/// The backend that an engine has.
#[derive(Debug)]
pub(super) struct Direct<B: Backend>(pub(super) Arc<Engine<Faulty<B>>>);

impl<B: Backend> Direct<B> {
    fn backend(&self) -> &B {
        &self.0.backend().inner
    }

    fn named(&self, step: &'static str, key: &LockKey) -> impl FnOnce(Error) -> Error {
        let backend = self.backend().capabilities().backend();
        move |error| error.within(step, backend, Some(key))
    }
}

#[async_trait]
impl<B: Backend> Store for Direct<B> {
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

    async fn renew(&self, grant: &GrantRef, ttl: Duration) -> Result<LeaseStatus> {
        let answer = self.steps().renew(&[Renewal { grant: grant.clone(), ttl }], WITHIN).await.pop();
        answer.unwrap_or_else(|| Err(Error::new(ErrorKind::Indeterminate, "renew").detail("no answer in the batch")))
    }

    async fn release(&self, grant: &GrantRef) -> Result<LeaseStatus> {
        self.steps().release(grant).await
    }

    async fn subscribe(&self, key: &LockKey) -> Result<Box<dyn Subscription>> {
        match self.backend().notifications() {
            Some(notifications) => notifications.subscribe(key).await.map_err(self.named("subscribe", key)),
            None => Err(Error::new(ErrorKind::Unsupported, "subscribe").detail("wake-up is claimed and not there")),
        }
    }

    fn steps(&self) -> &dyn Backend {
        self
    }

    async fn close(&self) {
        self.0.close().await;
    }
}

#[async_trait]
impl<B: Backend> Backend for Direct<B> {
    fn capabilities(&self) -> Capabilities {
        self.backend().capabilities()
    }

    fn session(&self) -> Option<SessionId> {
        self.backend().session()
    }

    async fn try_acquire(&self, claim: &Claim) -> Result<Attempt> {
        self.backend().try_acquire(claim).await.map_err(self.named("try_acquire", &claim.key))
    }

    async fn renew(&self, renewals: &[Renewal], within: Duration) -> Vec<Result<LeaseStatus>> {
        let answers = self.backend().renew(renewals, within).await.into_iter().enumerate();
        let key = |place: usize| renewals.get(place).map(|renewal| &renewal.grant.key);
        let backend = self.backend().capabilities().backend();
        answers.map(|(place, answer)| answer.map_err(|error| error.within("renew", backend, key(place)))).collect()
    }

    async fn release(&self, grant: &GrantRef) -> Result<LeaseStatus> {
        self.backend().release(grant).await.map_err(self.named("release", &grant.key))
    }

    async fn take_over(&self, grant: &GrantRef, new_owner: OwnerId, ttl: Duration) -> Result<LeaseStatus> {
        self.backend().take_over(grant, new_owner, ttl).await.map_err(self.named("take_over", &grant.key))
    }

    async fn downgrade(&self, writer: &GrantRef, claim: &Claim) -> Result<Attempt> {
        self.backend().downgrade(writer, claim).await.map_err(self.named("downgrade", &writer.key))
    }

    async fn inspect(&self, key: &LockKey) -> Result<Holders> {
        self.backend().inspect(key).await.map_err(self.named("inspect", key))
    }

    async fn list(&self, prefix: &str, after: Option<&Cursor>) -> Result<Page> {
        let backend = self.backend().capabilities().backend();
        self.backend().list(prefix, after).await.map_err(|error| error.within("list", backend, None))
    }

    async fn force_release(&self, key: &LockKey, only: Option<u64>) -> Result<Holders> {
        self.backend().force_release(key, only).await.map_err(self.named("force_release", key))
    }

    fn notifications(&self) -> Option<&dyn Notifications> {
        self.backend().notifications()
    }

    fn renewal_batch(&self) -> usize {
        self.backend().renewal_batch()
    }

    fn releases_in_place(&self) -> bool {
        self.backend().releases_in_place()
    }

    fn answers_within(&self) -> Duration {
        self.backend().answers_within()
    }

    async fn close(&self) {
        self.backend().close().await;
    }
}
