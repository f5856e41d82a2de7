use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{self, Arc, PoisonError, Weak};
use std::time::Duration;

use async_trait::async_trait;
use leasehold_core::{
    Attempt, Backend, BoxFuture, Capabilities, Capability, Claim, Cursor, Error, ErrorKind, GrantRef, Holders,
    LeaseStatus, LockKey, Notifications, OwnerId, Page, Renewal, Result, SharedBackend, Subscription,
};

use serde::de::DeserializeOwned;
use tokio::sync::{MappedMutexGuard, Mutex, MutexGuard};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

use crate::client::Connection;
use crate::wire::{Served, Step};

/// The [`Backend`] behind [`AgentLocks`](crate::AgentLocks): the steps of the store that an agent serves.
#[derive(Debug)]
pub struct AgentBackend {
    link: Arc<Link>,
}

/// The way to the agent, also to the one that follows it.
#[derive(Debug)]
struct Link {
    path: PathBuf,
    served: Served,
    /// One connects, and the others wait for it. `None` when it is closed.
    connection: Mutex<Option<Arc<Connection>>>,
    held: Held,
}

/// How long an agent may take to say what it serves.
const GREETING: Duration = Duration::from_secs(1);

/// What an answer takes from the agent to its client, at most. What the store itself is allowed comes before it, with what that may take
/// longer: to take a slow store for a dead agent ends the connection.
const HOP: Duration = Duration::from_millis(500);

impl AgentBackend {
    pub(crate) const NAME: &'static str = "agent";

    /// What every agent gives where the store behind it does: see [`AgentLocks`](crate::AgentLocks).
    pub(crate) fn claims() -> Capabilities {
        let declined = [Capability::Detach, Capability::Reentrancy];
        let claimed = Capability::ALL.iter().filter(|capability| !declined.contains(capability));
        claimed
            .fold(Capabilities::new(Self::NAME), |claims, capability| claims.with(*capability))
            .without(Capability::Detach, "a lock ends with the process that holds it")
            .without(Capability::Reentrancy, "all clients of an agent would be one session")
    }

    pub(crate) async fn connect(path: PathBuf) -> Result<Self> {
        let (connection, task) = Connection::open(&path, GREETING).await?;
        let served = connection.served.clone();
        let link = Link { path, served, connection: Mutex::new(Some(connection)), held: Held::default() };
        let link = Arc::new(link);
        link.follow(task);
        Ok(Self { link })
    }

    async fn ask<T: DeserializeOwned>(&self, step: Step) -> Result<T> {
        let sent = self.link.connection().await?.send(&step, None)?;
        sent.answer(self.answers_within()).await
    }
}

impl Link {
    /// The connection, which is opened anew if the agent has ended meanwhile.
    async fn connection(self: &Arc<Self>) -> Result<MappedMutexGuard<'_, Arc<Connection>>> {
        let connection = self.connection.lock().await;
        let closed = |_| Error::new(ErrorKind::Closed, "ask");
        let mut connection = MutexGuard::try_map(connection, Option::as_mut).map_err(closed)?;
        if connection.has_ended() {
            // On the runtime of this caller: the connection may have ended with an earlier one.
            let (opened, task) = Connection::open(&self.path, GREETING).await?;
            if opened.served != self.served {
                let why = "the agent serves another store than before, or in another version: connect anew";
                return Err(Error::new(ErrorKind::Backend, "connect").detail(why));
            }
            *connection = opened;
            self.follow(task);
        }
        Ok(connection)
    }

    /// When the connection has ended, tells the next agent what is held: until it knows that, it frees nothing when this process ends.
    fn follow(self: &Arc<Self>, connection: JoinHandle<()>) {
        let link = Arc::downgrade(self);
        tokio::spawn(async move {
            let _ = connection.await;
            tell_next(link).await;
        });
    }
}

/// Asks until an agent answers, as long as a lease lasts. A boxed future, since a connection that it opens is followed, too.
fn tell_next(link: Weak<Link>) -> BoxFuture<'static, ()> {
    const LONGEST_PAUSE: Duration = Duration::from_millis(200);
    Box::pin(async move {
        let mut pause = Duration::from_millis(10);
        loop {
            // Also for the answers that came before the end, so that what they grant is known.
            sleep(pause).await;
            let Some(link) = link.upgrade().filter(|link| !link.held.grants().is_empty()) else { return };
            match link.connection().await {
                Ok(connection) => return connection.holds(&link.held.grants()),
                Err(error) if error.kind() == ErrorKind::Closed => return,
                Err(_) => pause = LONGEST_PAUSE.min(pause * 2),
            }
        }
    })
}

/// What this process holds, and when the store ends the lease at the latest if nobody prolongs it.
#[derive(Debug, Default)]
struct Held(sync::Mutex<HashMap<(LockKey, OwnerId), (GrantRef, Instant)>>);

impl Held {
    /// It is held until then, or no more.
    fn note(&self, grant: &GrantRef, until: Option<Instant>) {
        let (id, mut all) = ((grant.key.clone(), grant.owner), self.all());
        if all.len() == all.capacity() {
            // Of a lease that ended by itself nobody says so.
            let now = Instant::now();
            all.retain(|_, (_, until)| *until > now);
        }
        match until {
            Some(until) => drop(all.insert(id, (grant.clone(), until))),
            None => drop(all.remove(&id)),
        }
    }

    fn note_claim(&self, claim: &Claim, answer: &Result<Attempt>, sent: Instant) {
        if let Ok(Attempt::Granted { epoch }) = answer {
            self.note(&claim.grant(*epoch), Some(sent + claim.ttl));
        }
    }

    /// With what is left of each lease.
    fn grants(&self) -> Vec<(GrantRef, Duration)> {
        let (now, all) = (Instant::now(), self.all());
        let left = all.values().map(|(grant, until)| (grant.clone(), until.duration_since(now)));
        left.filter(|(_, left)| !left.is_zero()).collect()
    }

    fn all(&self) -> sync::MutexGuard<'_, HashMap<(LockKey, OwnerId), (GrantRef, Instant)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Backend for AgentBackend {
    fn capabilities(&self) -> Capabilities {
        self.link.served.narrow(&Self::claims())
    }

    async fn try_acquire(&self, claim: &Claim) -> Result<Attempt> {
        let sent = Instant::now();
        let attempt = self.ask(Step::TryAcquire(claim.clone())).await;
        self.link.held.note_claim(claim, &attempt, sent);
        attempt
    }

    async fn renew(&self, renewals: &[Renewal], within: Duration) -> Vec<Result<LeaseStatus>> {
        let (step, sent) = (Step::Renew(renewals.to_vec(), within), Instant::now());
        let answered: Result<Vec<Result<LeaseStatus>>> = self.ask(step).await;
        for (renewal, status) in renewals.iter().zip(answered.iter().flatten()) {
            if let Ok(status) = status {
                let is_held = *status == LeaseStatus::Held;
                self.link.held.note(&renewal.grant, is_held.then_some(sent + renewal.ttl));
            }
        }
        answered.unwrap_or_else(|error| renewals.iter().map(|_| Err(error.clone())).collect())
    }

    async fn release(&self, grant: &GrantRef) -> Result<LeaseStatus> {
        let released = self.ask(Step::Release(grant.clone())).await;
        if released.is_ok() {
            self.link.held.note(grant, None);
        }
        released
    }

    async fn downgrade(&self, writer: &GrantRef, claim: &Claim) -> Result<Attempt> {
        let sent = Instant::now();
        let attempt = self.ask(Step::Downgrade(writer.clone(), claim.clone())).await;
        self.link.held.note_claim(claim, &attempt, sent);
        if matches!(attempt, Ok(Attempt::Granted { .. })) {
            self.link.held.note(writer, None);
        }
        attempt
    }

    async fn inspect(&self, key: &LockKey) -> Result<Holders> {
        self.ask(Step::Inspect(key.clone())).await
    }

    async fn list(&self, prefix: &str, after: Option<&Cursor>) -> Result<Page> {
        self.ask(Step::List(prefix.to_owned(), after.cloned())).await
    }

    async fn force_release(&self, key: &LockKey, only: Option<u64>) -> Result<Holders> {
        self.ask(Step::ForceRelease(key.clone(), only)).await
    }

    fn notifications(&self) -> Option<&dyn Notifications> {
        self.capabilities().has(Capability::Wakeup).then_some(self as _)
    }

    fn renewal_batch(&self) -> usize {
        self.link.served.renewal_batch
    }

    fn answers_within(&self) -> Duration {
        self.link.served.answers_within * 5 / 4 + HOP
    }

    async fn close(&self) {
        if let Some(connection) = self.link.connection.lock().await.take() {
            connection.end();
        }
    }
}

impl SharedBackend for AgentBackend {}

#[async_trait]
impl Notifications for AgentBackend {
    async fn subscribe(&self, key: &LockKey) -> Result<Box<dyn Subscription>> {
        let (sent, notified) = self.link.connection().await?.subscribe(key)?;
        sent.answer::<()>(self.answers_within()).await?;
        Ok(Box::new(notified))
    }
}
