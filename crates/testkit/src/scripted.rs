use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use leasehold_core::{
    Attempt, Backend, Capabilities, Capability, Claim, Clock, Cursor, Engine, EngineOptions, Error, ErrorKind,
    GrantRef, Holders, LeaseStatus, LockKey, MemoryBackend, Notifications, OwnerId, Page, Renewal, Result,
    SharedBackend, Subscription,
};

/// A store in memory whose steps do what a test wants. Clones are the same store, with the same script.
#[derive(Clone, Debug)]
pub struct Scripted {
    /// What carries the steps out.
    pub store: MemoryBackend,
    script: Arc<Mutex<Script>>,
    clock: Clock,
    queues: bool,
    deaf: bool,
    answers_within: Duration,
}

/// A step that the script can change.
#[derive(Clone, Copy, Debug)]
pub enum Step {
    /// [`Backend::try_acquire`].
    Claim,
    /// [`Backend::renew`].
    Renew,
    /// [`Backend::release`].
    Release,
    /// [`Notifications::subscribe`].
    Listen,
    /// [`Backend::take_over`].
    TakeOver,
    /// [`Backend::downgrade`].
    Downgrade,
    /// [`Backend::inspect`], [`Backend::list`] and [`Backend::force_release`].
    Administer,
}

impl Step {
    /// All of them.
    pub const ALL: [Self; 7] =
        [Self::Claim, Self::Renew, Self::Release, Self::Listen, Self::TakeOver, Self::Downgrade, Self::Administer];
}

/// What a step does.
#[derive(Clone, Copy, Debug, Default)]
pub enum Does {
    /// What it should.
    #[default]
    Well,
    /// The same, so much later.
    Slow(Duration),
    /// The same, and answers so much later.
    Late(Duration),
    /// Nothing, and says so with this kind of error.
    Refuse(ErrorKind),
    /// What it should, and the answer is lost.
    LoseAnswer,
    /// Nothing, and never answers.
    Hang,
    /// Nothing, and panics.
    Panic,
}

#[derive(Debug, Default)]
struct Script {
    plans: [Plan; Step::ALL.len()],
    granted: Vec<OwnerId>,
}

#[derive(Debug, Default)]
struct Plan {
    next: VecDeque<Does>,
    else_: Does,
    times: usize,
}

impl Scripted {
    /// A store that does everything well.
    pub fn new(clock: &Clock) -> Self {
        let store = MemoryBackend::new(clock.clone());
        // A key of a store that is not new can be granted 17 times while the clock of a test stands still.
        clock.advance(Duration::from_millis(2));
        let answers_within = store.answers_within();
        Self { store, script: Arc::default(), clock: clock.clone(), queues: false, deaf: false, answers_within }
    }

    /// The same store, which claims to have a queue of its own.
    #[must_use]
    pub fn queueing(self) -> Self {
        Self { queues: true, ..self }
    }

    /// The same store without notifications.
    #[must_use]
    pub fn deaf(self) -> Self {
        Self { deaf: true, ..self }
    }

    /// The same store, which says that its answers may take so long.
    #[must_use]
    pub fn answering_within(self, limit: Duration) -> Self {
        Self { answers_within: limit, ..self }
    }

    /// Another contender for its keys.
    pub fn engine(&self) -> Engine<Self> {
        self.engine_with(EngineOptions::new())
    }

    /// The same, with these settings.
    pub fn engine_with(&self, settings: EngineOptions) -> Engine<Self> {
        Engine::with(self.clone(), settings.clock(self.clock.clone()))
    }

    /// What the next of these steps do, behind those that are planned.
    pub fn next(&self, step: Step, does: impl IntoIterator<Item = Does>) {
        self.script().plans[step as usize].next.extend(does);
    }

    /// What these steps do when nothing else is planned.
    pub fn always(&self, step: Step, does: Does) {
        self.script().plans[step as usize].else_ = does;
    }

    /// How often this step was asked for.
    pub fn times(&self, step: Step) -> usize {
        self.script().plans[step as usize].times
    }

    /// How many of these steps are planned and not taken.
    pub fn left(&self, step: Step) -> usize {
        self.script().plans[step as usize].next.len()
    }

    /// To whom the store granted something, in this order.
    pub fn granted(&self) -> Vec<OwnerId> {
        self.script().granted.clone()
    }

    fn script(&self) -> MutexGuard<'_, Script> {
        self.script.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn play<T>(&self, of: Step, step: impl Future<Output = T> + Send) -> Result<T> {
        let does = {
            let plan = &mut self.script().plans[of as usize];
            plan.times += 1;
            plan.next.pop_front().unwrap_or(plan.else_)
        };
        match does {
            Does::Well => Ok(step.await),
            Does::Slow(by) => {
                tokio::time::sleep(by).await;
                Ok(step.await)
            }
            Does::Late(by) => {
                let answer = step.await;
                tokio::time::sleep(by).await;
                Ok(answer)
            }
            Does::Refuse(kind) => Err(Error::new(kind, "ask").detail("refused on purpose")),
            Does::LoseAnswer => {
                step.await;
                Err(Error::new(ErrorKind::Indeterminate, "ask").detail("the answer was lost on purpose"))
            }
            Does::Hang => std::future::pending().await,
            Does::Panic => panic!("on purpose"),
        }
    }
}

#[async_trait]
impl Backend for Scripted {
    fn capabilities(&self) -> Capabilities {
        let capabilities = self.store.capabilities();
        if self.queues { capabilities.with(Capability::Queue) } else { capabilities }
    }

    async fn try_acquire(&self, claim: &Claim) -> Result<Attempt> {
        let step = async {
            let attempt = self.store.try_acquire(claim).await;
            if matches!(attempt, Ok(Attempt::Granted { .. })) {
                self.script().granted.push(claim.owner);
            }
            attempt
        };
        self.play(Step::Claim, step).await?
    }

    async fn renew(&self, renewals: &[Renewal], within: Duration) -> Vec<Result<LeaseStatus>> {
        match self.play(Step::Renew, self.store.renew(renewals, within)).await {
            Ok(answers) => answers,
            Err(error) => renewals.iter().map(|_| Err(error.clone())).collect(),
        }
    }

    async fn release(&self, grant: &GrantRef) -> Result<LeaseStatus> {
        self.play(Step::Release, self.store.release(grant)).await?
    }

    async fn take_over(&self, grant: &GrantRef, new_owner: OwnerId, ttl: Duration) -> Result<LeaseStatus> {
        self.play(Step::TakeOver, self.store.take_over(grant, new_owner, ttl)).await?
    }

    async fn downgrade(&self, writer: &GrantRef, claim: &Claim) -> Result<Attempt> {
        self.play(Step::Downgrade, self.store.downgrade(writer, claim)).await?
    }

    async fn inspect(&self, key: &LockKey) -> Result<Holders> {
        self.play(Step::Administer, self.store.inspect(key)).await?
    }

    async fn list(&self, prefix: &str, after: Option<&Cursor>) -> Result<Page> {
        self.play(Step::Administer, self.store.list(prefix, after)).await?
    }

    async fn force_release(&self, key: &LockKey, only: Option<u64>) -> Result<Holders> {
        self.play(Step::Administer, self.store.force_release(key, only)).await?
    }

    fn answers_within(&self) -> Duration {
        self.answers_within
    }

    fn notifications(&self) -> Option<&dyn Notifications> {
        if self.deaf { None } else { Some(self) }
    }
}

impl SharedBackend for Scripted {}

#[async_trait]
impl Notifications for Scripted {
    async fn subscribe(&self, key: &LockKey) -> Result<Box<dyn Subscription>> {
        self.play(Step::Listen, self.store.subscribe(key)).await?
    }
}
