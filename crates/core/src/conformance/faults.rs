//! Faults between engine and backend, and a record of the requests that passed.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::watch;
use tokio::time::sleep;

use crate::{
    Attempt, Backend, Capabilities, Capability, Claim, Cursor, Engine, Error, ErrorKind, GrantRef, Holders,
    LeaseStatus, LockKey, Notification, Notifications, OwnerId, Page, Renewal, Result, SessionId, SharedBackend,
    Subscription,
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
    /// [`Notifications::subscribe`].
    Subscribe,
    /// [`Subscription::next`]. Whatever the fault, the notification is lost.
    Notification,
    /// [`Backend::force_release`].
    ForceRelease,
    /// [`Backend::inspect`].
    Inspect,
    /// [`Backend::list`].
    List,
}

impl Op {
    /// As an error names it.
    fn name(self) -> &'static str {
        match self {
            Self::TryAcquire => "try_acquire",
            Self::Renew => "renew",
            Self::Release => "release",
            Self::TakeOver => "take_over",
            Self::Downgrade => "downgrade",
            Self::Subscribe => "subscribe",
            Self::Notification => "next",
            Self::ForceRelease => "force_release",
            Self::Inspect => "inspect",
            Self::List => "list",
        }
    }
}

/// What goes wrong with a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Nothing: for the place of a call in a row of faults.
    Nothing,
    /// The call is executed this much later.
    Slow(Duration),
    /// The call is not executed, and fails with an error of this kind.
    Refuse(ErrorKind),
    /// The call is not executed, and fails with an error of this kind and these words of the store.
    Say(ErrorKind, &'static str),
    /// The call is executed, and its answer is lost: the outcome is unknown.
    LoseReply,
    /// The call is executed, and its answer comes this much later.
    Delay(Duration),
    /// The call is executed, and its answer comes when the faults are healed.
    KeepReply,
    /// The call is not executed, and has no answer until the faults are healed.
    Hang,
    /// The call is not executed, and panics.
    Panic,
}

/// The faults of one client, and a record of the requests that reached its store.
#[derive(Clone, Debug)]
pub struct Faults(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    plan: Mutex<Plan>,
    healed: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct Plan {
    next: HashMap<Op, VecDeque<(Vec<Fault>, usize)>>,
    always: HashMap<Op, Fault>,
    choice: Choice,
    steps: Vec<Request>,
    granted: Vec<OwnerId>,
    renewals: Vec<RenewalBatch>,
    under_way: HashMap<Op, usize>,
    answered: HashMap<Op, usize>,
}

/// What goes wrong with a call for which nothing is planned.
#[derive(Clone, Default)]
struct Choice(Option<Arc<dyn Fn(Op) -> Vec<Fault> + Send + Sync>>);

impl fmt::Debug for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Choice").field(&self.0.is_some()).finish()
    }
}

/// One request that reached the store, or would have without a fault.
#[derive(Clone, Debug)]
pub struct Request {
    /// What was asked.
    pub op: Op,
    /// Of which key.
    pub key: LockKey,
    /// For whom.
    pub owner: OwnerId,
}

impl Request {
    fn new(op: Op, key: &LockKey, owner: OwnerId) -> Self {
        Self { op, key: key.clone(), owner }
    }
}

/// The leases of a batch of renewals, and how long an answer to it is of use.
pub type RenewalBatch = (Vec<Duration>, Duration);

impl Default for Faults {
    fn default() -> Self {
        Self(Arc::new(Shared { plan: Mutex::default(), healed: watch::Sender::new(0) }))
    }
}

impl Faults {
    /// The next `times` calls of this kind, behind those that are planned, go wrong.
    pub fn next(&self, op: Op, fault: Fault, times: usize) {
        self.plan().next.entry(op).or_default().push_back((vec![fault], times));
    }

    /// The next call of this kind, behind those that are planned, goes wrong in all these ways.
    pub fn next_in_all(&self, op: Op, faults: impl Into<Vec<Fault>>) {
        self.plan().next.entry(op).or_default().push_back((faults.into(), 1));
    }

    /// All calls of this kind for which nothing else is planned go wrong.
    pub fn always(&self, op: Op, fault: Fault) {
        self.plan().always.insert(op, fault);
    }

    /// All calls for which nothing is planned go wrong in these ways, one behind the other.
    pub fn choose(&self, choose: impl Fn(Op) -> Vec<Fault> + Send + Sync + 'static) {
        self.plan().choice = Choice(Some(Arc::new(choose)));
    }

    /// Ends all faults, and lets the calls go on that wait for this.
    pub fn heal(&self) {
        let mut plan = self.plan();
        plan.next.clear();
        plan.always.clear();
        plan.choice = Choice::default();
        drop(plan);
        self.0.healed.send_modify(|times| *times += 1);
    }

    /// The requests of this kind about this key.
    pub fn steps(&self, op: Op, key: &LockKey) -> Vec<Request> {
        self.plan().steps.iter().filter(|step| step.op == op && step.key == *key).cloned().collect()
    }

    /// How many requests of this kind there were about this key.
    pub fn count(&self, op: Op, key: &LockKey) -> usize {
        self.steps(op, key).len()
    }

    /// To whom the store granted a claim, in this order.
    pub fn granted(&self) -> Vec<OwnerId> {
        self.plan().granted.clone()
    }

    /// The renewals that were asked for.
    pub fn renewals(&self) -> Vec<RenewalBatch> {
        self.plan().renewals.clone()
    }

    /// How many calls of this kind there were, also of those that are about no key or several.
    pub fn calls(&self, op: Op) -> usize {
        let plan = self.plan();
        let now = plan.under_way.get(&op).copied().unwrap_or(0);
        now + plan.answered.get(&op).copied().unwrap_or(0)
    }

    /// How many faults of this kind of call are planned and have not come.
    pub fn left(&self, op: Op) -> usize {
        self.plan().next.get(&op).map_or(0, |next| next.iter().map(|(_, times)| times).sum())
    }

    pub(super) fn all_steps(&self) -> usize {
        self.plan().steps.len()
    }

    /// How many calls of this kind have ended, whether or not anybody waited for their answers.
    pub fn answered(&self, op: Op) -> usize {
        self.plan().answered.get(&op).copied().unwrap_or(0)
    }

    fn plan(&self) -> MutexGuard<'_, Plan> {
        self.0.plan.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self, op: Op) -> Vec<Fault> {
        let mut plan = self.plan();
        if let Some(next) = plan.next.get_mut(&op)
            && let Some((faults, left)) = next.front_mut()
        {
            let faults = faults.clone();
            *left = left.saturating_sub(1);
            if *left == 0 {
                next.pop_front();
            }
            return faults;
        }
        if let Some(fault) = plan.always.get(&op) {
            return vec![*fault];
        }
        let choice = plan.choice.clone();
        drop(plan);
        choice.0.map(|choose| choose(op)).unwrap_or_default()
    }

    fn begin(&self, op: Op, steps: impl IntoIterator<Item = Request>) -> UnderWay {
        let mut plan = self.plan();
        plan.steps.extend(steps);
        *plan.under_way.entry(op).or_default() += 1;
        UnderWay { faults: self.clone(), op }
    }

    /// Applies the faults of a call to it.
    async fn around<T>(&self, op: Op, step: impl Future<Output = T> + Send) -> Result<T> {
        let unknown = || Error::new(ErrorKind::Indeterminate, "answer").detail("the reply was lost on purpose");
        let faults = self.take(op);
        for fault in &faults {
            match fault {
                Fault::Slow(by) => sleep(*by).await,
                Fault::Refuse(kind) => return Err(Error::new(*kind, "answer").detail("refused on purpose")),
                Fault::Say(kind, words) => return Err(Error::new(*kind, "answer").detail(*words)),
                Fault::Hang => {
                    let _ = self.0.healed.subscribe().changed().await;
                    return Err(unknown());
                }
                Fault::Panic => panic!("on purpose"),
                Fault::Nothing | Fault::LoseReply | Fault::Delay(_) | Fault::KeepReply => {}
            }
        }
        let mut healed = self.0.healed.subscribe();
        let answer = step.await;
        for fault in &faults {
            match fault {
                Fault::Delay(by) => sleep(*by).await,
                Fault::KeepReply => drop(healed.changed().await),
                Fault::LoseReply => return Err(unknown()),
                _ => {}
            }
        }
        Ok(answer)
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

/// A backend with faults between it and its engine. Clones have the same faults.
#[derive(Clone, Debug)]
pub struct Faulty<B> {
    /// What carries the steps out.
    pub inner: B,
    /// What goes wrong.
    pub faults: Faults,
    claims: Vec<Capability>,
    deaf: bool,
    remote: bool,
    answers_within: Option<Duration>,
}

impl<B> Faulty<B> {
    /// A backend with which nothing goes wrong.
    pub fn new(inner: B) -> Self {
        Self { inner, faults: Faults::default(), claims: Vec::new(), deaf: false, remote: false, answers_within: None }
    }

    /// The backend, which claims this besides.
    #[must_use]
    pub fn claiming(mut self, capability: Capability) -> Self {
        self.claims.push(capability);
        self
    }

    /// The backend without notifications.
    #[must_use]
    pub fn deaf(self) -> Self {
        Self { deaf: true, ..self }
    }

    /// The backend, whose releases may take time, where they else are carried out while the caller waits for nothing.
    #[must_use]
    pub fn remote(self) -> Self {
        Self { remote: true, ..self }
    }

    /// The backend, which says that its answers may take so long.
    #[must_use]
    pub fn answering_within(self, limit: Duration) -> Self {
        Self { answers_within: Some(limit), ..self }
    }
}

impl<B: Backend> Faulty<B> {
    /// Applies the faults of a call to it. An error names the step and the key.
    async fn step<T>(
        &self,
        op: Op,
        (key, owner): (Option<&LockKey>, Option<OwnerId>),
        step: impl Future<Output = Result<T>> + Send,
    ) -> Result<T> {
        let _under_way = self.faults.begin(op, key.zip(owner).map(|(key, owner)| Request::new(op, key, owner)));
        let answer = self.faults.around(op, step).await.and_then(|answer| answer);
        answer.map_err(|error| error.within(op.name(), self.inner.capabilities().backend(), key))
    }
}

impl<B: Backend + Clone> Faulty<B> {
    /// Another contender for the keys of this backend.
    pub fn engine(&self) -> Engine<Self> {
        Engine::new(self.clone())
    }
}

#[async_trait]
impl<B: Backend> Backend for Faulty<B> {
    fn capabilities(&self) -> Capabilities {
        self.claims.iter().fold(self.inner.capabilities(), |all, capability| all.with(*capability))
    }

    fn session(&self) -> Option<SessionId> {
        self.inner.session()
    }

    async fn try_acquire(&self, claim: &Claim) -> Result<Attempt> {
        let claimed = async {
            let attempt = self.inner.try_acquire(claim).await;
            if matches!(attempt, Ok(Attempt::Granted { .. })) {
                self.faults.plan().granted.push(claim.owner);
            }
            attempt
        };
        self.step(Op::TryAcquire, (Some(&claim.key), Some(claim.owner)), claimed).await
    }

    async fn renew(&self, renewals: &[Renewal], within: Duration) -> Vec<Result<LeaseStatus>> {
        let steps = renewals.iter().map(|renewal| Request::new(Op::Renew, &renewal.grant.key, renewal.grant.owner));
        let _under_way = self.faults.begin(Op::Renew, steps);
        let leases = renewals.iter().map(|renewal| renewal.ttl).collect();
        self.faults.plan().renewals.push((leases, within));
        let answers = match self.faults.around(Op::Renew, self.inner.renew(renewals, within)).await {
            Ok(answers) => answers,
            Err(error) => renewals.iter().map(|_| Err(error.retell())).collect(),
        };
        let backend = self.inner.capabilities().backend();
        let key = |place: usize| renewals.get(place).map(|renewal| &renewal.grant.key);
        let named = answers.into_iter().enumerate();
        named.map(|(place, answer)| answer.map_err(|error| error.within("renew", backend, key(place)))).collect()
    }

    async fn release(&self, grant: &GrantRef) -> Result<LeaseStatus> {
        self.step(Op::Release, (Some(&grant.key), Some(grant.owner)), self.inner.release(grant)).await
    }

    async fn take_over(&self, grant: &GrantRef, new_owner: OwnerId, ttl: Duration) -> Result<LeaseStatus> {
        let taken = self.inner.take_over(grant, new_owner, ttl);
        self.step(Op::TakeOver, (Some(&grant.key), Some(new_owner)), taken).await
    }

    async fn downgrade(&self, writer: &GrantRef, claim: &Claim) -> Result<Attempt> {
        let downgraded = self.inner.downgrade(writer, claim);
        self.step(Op::Downgrade, (Some(&claim.key), Some(claim.owner)), downgraded).await
    }

    async fn inspect(&self, key: &LockKey) -> Result<Holders> {
        self.step(Op::Inspect, (Some(key), None), self.inner.inspect(key)).await
    }

    async fn list(&self, prefix: &str, after: Option<&Cursor>) -> Result<Page> {
        self.step(Op::List, (None, None), self.inner.list(prefix, after)).await
    }

    async fn force_release(&self, key: &LockKey, only: Option<u64>) -> Result<Holders> {
        self.step(Op::ForceRelease, (Some(key), None), self.inner.force_release(key, only)).await
    }

    fn notifications(&self) -> Option<&dyn Notifications> {
        if self.deaf { None } else { self.inner.notifications().map(|_| self as _) }
    }

    fn renewal_batch(&self) -> usize {
        self.inner.renewal_batch()
    }

    fn releases_in_place(&self) -> bool {
        !self.remote && self.inner.releases_in_place()
    }

    fn answers_within(&self) -> Duration {
        self.answers_within.unwrap_or_else(|| self.inner.answers_within())
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
        let inner = self.step(Op::Subscribe, (Some(key), None), notifications.subscribe(key)).await?;
        Ok(Box::new(LossySubscription { inner, faults: self.faults.clone() }))
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
            let faults = self.faults.take(Op::Notification);
            if faults.iter().all(|fault| *fault == Fault::Nothing) {
                return notification;
            }
        }
    }
}
