//! Faults between engine and backend, and a record of the requests that passed.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::watch;

use crate::{
    Attempt, Backend, Capabilities, Claim, Cursor, Error, ErrorKind, GrantRef, Holders, LeaseStatus, LockKey,
    Notification, Notifications, OwnerId, Page, Renewal, Result, SessionId, SharedBackend, Subscription,
};

/// A method of the backend that a fault can hit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Op {
    /// [`Backend::try_acquire`].
    TryAcquire,
    /// [`Backend::renew`].
    Renew,
    /// [`Backend::release`].
    Release,
    /// [`Backend::take_over`].
    TakeOver,
    /// [`Backend::downgrade`].
    Downgrade,
    /// [`Subscription::next`].
    Notification,
    /// [`Backend::force_release`].
    ForceRelease,
    /// [`Backend::inspect`].
    Inspect,
}

/// What goes wrong with a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The call is not executed, and fails with an error of this kind.
    Refuse(ErrorKind),
    /// The call is executed, and its answer is lost: the outcome is unknown.
    LoseReply,
    /// The call is executed, and its answer comes this much later.
    Delay(Duration),
    /// The call is executed, and its answer comes when the faults are healed.
    KeepReply,
    /// The call is not executed, and has no answer until the faults are healed.
    Hang,
}

/// The faults of one test client, and a record of the requests that reached its store.
#[derive(Clone, Debug)]
pub struct Faults(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    plan: Mutex<Plan>,
    healed: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct Plan {
    next: HashMap<Op, (Fault, usize)>,
    steps: Vec<Step>,
    under_way: HashMap<Op, usize>,
    answered: HashMap<Op, usize>,
    most_at_once: HashMap<Op, usize>,
}

/// One request that reached the store, or would have without a fault.
#[derive(Clone, Debug)]
pub(super) struct Step {
    pub(super) op: Op,
    pub(super) key: LockKey,
    pub(super) owner: OwnerId,
}

impl Faults {
    pub(super) fn new() -> Self {
        Self(Arc::new(Shared { plan: Mutex::default(), healed: watch::Sender::new(0) }))
    }

    /// The next `times` calls of this kind go wrong.
    pub(super) fn next(&self, op: Op, fault: Fault, times: usize) {
        self.plan().next.insert(op, (fault, times));
    }

    /// All calls of this kind go wrong.
    pub(super) fn always(&self, op: Op, fault: Fault) {
        self.next(op, fault, usize::MAX);
    }

    /// Ends all faults, and lets the calls go on that wait for this.
    pub(super) fn heal(&self) {
        self.plan().next.clear();
        self.0.healed.send_modify(|times| *times += 1);
    }

    pub(super) fn steps(&self, op: Op, key: &LockKey) -> Vec<Step> {
        self.plan().steps.iter().filter(|step| step.op == op && step.key == *key).cloned().collect()
    }

    pub(super) fn count(&self, op: Op, key: &LockKey) -> usize {
        self.steps(op, key).len()
    }

    pub(super) fn all_steps(&self) -> usize {
        self.plan().steps.len()
    }

    pub(super) fn most_at_once(&self, op: Op) -> usize {
        self.plan().most_at_once.get(&op).copied().unwrap_or(0)
    }

    pub(super) fn answered(&self, op: Op) -> usize {
        self.plan().answered.get(&op).copied().unwrap_or(0)
    }

    fn plan(&self) -> MutexGuard<'_, Plan> {
        self.0.plan.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self, op: Op) -> Option<Fault> {
        let mut plan = self.plan();
        let (fault, left) = plan.next.get_mut(&op)?;
        let fault = *fault;
        *left = left.saturating_sub(1);
        if *left == 0 {
            plan.next.remove(&op);
        }
        Some(fault)
    }

    fn begin<'a>(&self, op: Op, grants: impl Iterator<Item = (&'a LockKey, OwnerId)>) -> UnderWay {
        let mut plan = self.plan();
        plan.steps.extend(grants.map(|(key, owner)| Step { op, key: key.clone(), owner }));
        let now = plan.under_way.entry(op).or_default();
        *now += 1;
        let now = *now;
        let most = plan.most_at_once.entry(op).or_default();
        *most = now.max(*most);
        UnderWay { faults: self.clone(), op }
    }

    /// Applies the planned fault to a call.
    async fn around<T>(&self, op: Op, step: impl Future<Output = T> + Send) -> Result<T> {
        let unknown = || Error::new(ErrorKind::Indeterminate, "answer").detail("the reply was lost on purpose");
        match self.take(op) {
            None => Ok(step.await),
            Some(Fault::Refuse(kind)) => Err(Error::new(kind, "answer").detail("refused on purpose")),
            Some(Fault::LoseReply) => {
                step.await;
                Err(unknown())
            }
            Some(Fault::Delay(by)) => {
                let answer = step.await;
                tokio::time::sleep(by).await;
                Ok(answer)
            }
            Some(Fault::KeepReply) => {
                let mut healed = self.0.healed.subscribe();
                let answer = step.await;
                let _ = healed.changed().await;
                Ok(answer)
            }
            Some(Fault::Hang) => {
                let _ = self.0.healed.subscribe().changed().await;
                Err(unknown())
            }
        }
    }
}

struct UnderWay {
    faults: Faults,
    op: Op,
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        let mut plan = self.faults.plan();
        if let Some(now) = plan.under_way.get_mut(&self.op) {
            *now -= 1;
        }
        *plan.answered.entry(self.op).or_default() += 1;
    }
}

/// A backend with faults between it and its engine.
#[derive(Debug)]
pub(super) struct Faulty<B> {
    pub(super) inner: B,
    pub(super) faults: Faults,
}

#[async_trait]
impl<B: Backend> Backend for Faulty<B> {
    fn capabilities(&self) -> Capabilities {
        self.inner.capabilities()
    }

    fn session(&self) -> Option<SessionId> {
        self.inner.session()
    }

    async fn try_acquire(&self, claim: &Claim) -> Result<Attempt> {
        let _under_way = self.faults.begin(Op::TryAcquire, std::iter::once((&claim.key, claim.owner)));
        self.faults.around(Op::TryAcquire, self.inner.try_acquire(claim)).await?
    }

    async fn renew(&self, renewals: &[Renewal], within: Duration) -> Vec<Result<LeaseStatus>> {
        let grants = renewals.iter().map(|renewal| (&renewal.grant.key, renewal.grant.owner));
        let _under_way = self.faults.begin(Op::Renew, grants);
        match self.faults.around(Op::Renew, self.inner.renew(renewals, within)).await {
            Ok(answers) => answers,
            Err(error) => renewals.iter().map(|_| Err(error.retell())).collect(),
        }
    }

    async fn release(&self, grant: &GrantRef) -> Result<LeaseStatus> {
        let _under_way = self.faults.begin(Op::Release, std::iter::once((&grant.key, grant.owner)));
        self.faults.around(Op::Release, self.inner.release(grant)).await?
    }

    async fn take_over(&self, grant: &GrantRef, new_owner: OwnerId, ttl: Duration) -> Result<LeaseStatus> {
        let _under_way = self.faults.begin(Op::TakeOver, std::iter::once((&grant.key, new_owner)));
        self.faults.around(Op::TakeOver, self.inner.take_over(grant, new_owner, ttl)).await?
    }

    async fn downgrade(&self, writer: &GrantRef, claim: &Claim) -> Result<Attempt> {
        let _under_way = self.faults.begin(Op::Downgrade, std::iter::once((&claim.key, claim.owner)));
        self.faults.around(Op::Downgrade, self.inner.downgrade(writer, claim)).await?
    }

    async fn inspect(&self, key: &LockKey) -> Result<Holders> {
        self.faults.around(Op::Inspect, self.inner.inspect(key)).await?
    }

    async fn list(&self, prefix: &str, after: Option<&Cursor>) -> Result<Page> {
        self.inner.list(prefix, after).await
    }

    async fn force_release(&self, key: &LockKey, only: Option<u64>) -> Result<Holders> {
        self.faults.around(Op::ForceRelease, self.inner.force_release(key, only)).await?
    }

    fn notifications(&self) -> Option<&dyn Notifications> {
        self.inner.notifications().map(|_| self as _)
    }

    fn renewal_batch(&self) -> usize {
        self.inner.renewal_batch()
    }

    fn releases_in_place(&self) -> bool {
        self.inner.releases_in_place()
    }

    fn answers_within(&self) -> Duration {
        self.inner.answers_within()
    }

    async fn close(&self) {
        self.inner.close().await;
    }
}

impl<B: SharedBackend> SharedBackend for Faulty<B> {}

#[async_trait]
impl<B: Backend> Notifications for Faulty<B> {
    async fn subscribe(&self, key: &LockKey) -> Result<Box<dyn Subscription>> {
        let Some(notifications) = self.inner.notifications() else {
            return Err(Error::new(ErrorKind::Unsupported, "subscribe"));
        };
        Ok(Box::new(LossySubscription { inner: notifications.subscribe(key).await?, faults: self.faults.clone() }))
    }
}

struct LossySubscription {
    inner: Box<dyn Subscription>,
    faults: Faults,
}

#[async_trait]
impl Subscription for LossySubscription {
    async fn next(&mut self) -> Notification {
        loop {
            let notification = self.inner.next().await;
            if self.faults.take(Op::Notification).is_none() {
                return notification;
            }
        }
    }
}
