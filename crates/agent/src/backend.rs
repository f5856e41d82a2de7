use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use leasehold_core::{
    Attempt, Backend, Capabilities, Capability, Claim, Cursor, Error, ErrorKind, GrantRef, Holders, LeaseStatus,
    LockKey, Notification, Notifications, Page, Renewal, Result, SharedBackend, Subscription,
};

use crate::client::{Connection, Notified};
use crate::wire::{Reply, Served, Step};

/// The [`Backend`] behind [`AgentLocks`](crate::AgentLocks): the steps of the store that an agent serves.
pub struct AgentBackend {
    path: PathBuf,
    served: Served,
    connection: Mutex<Option<Arc<Connection>>>,
    /// One connects, and the others wait for it.
    connecting: tokio::sync::Mutex<()>,
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
        let connection = Connection::open(&path, GREETING).await?;
        let served = connection.served.clone();
        let connection = Mutex::new(Some(connection));
        Ok(Self { path, served, connection, connecting: tokio::sync::Mutex::default() })
    }

    fn present(&self) -> Result<Option<Arc<Connection>>> {
        let connection = self.connection.lock().unwrap_or_else(PoisonError::into_inner);
        match &*connection {
            None => Err(Error::new(ErrorKind::Closed, "ask")),
            Some(there) if there.has_ended() => Ok(None),
            Some(there) => Ok(Some(Arc::clone(there))),
        }
    }

    /// The connection, which is opened anew if the agent has ended meanwhile.
    async fn connection(&self) -> Result<Arc<Connection>> {
        if let Some(connection) = self.present()? {
            return Ok(connection);
        }
        let _alone = self.connecting.lock().await;
        if let Some(connection) = self.present()? {
            return Ok(connection);
        }
        // On the runtime of this caller: the connection may have ended with an earlier one.
        let opened = Connection::open(&self.path, GREETING).await?;
        if opened.served != self.served {
            let why = "the agent serves another store than before, or in another version: connect anew";
            return Err(Error::new(ErrorKind::Backend, "connect").detail(why));
        }
        let mut connection = self.connection.lock().unwrap_or_else(PoisonError::into_inner);
        if connection.is_none() {
            return Err(Error::new(ErrorKind::Closed, "ask"));
        }
        *connection = Some(Arc::clone(&opened));
        Ok(opened)
    }

    async fn ask(&self, step: Step) -> Result<Reply> {
        let connection = self.connection().await?;
        connection.ask(&step, self.answers_within()).await
    }
}

/// An agent of this version answers a step with its own kind of reply.
fn other() -> Error {
    Error::new(ErrorKind::Indeterminate, "ask").detail("the agent gave the answer to another question")
}

#[async_trait]
impl Backend for AgentBackend {
    fn capabilities(&self) -> Capabilities {
        self.served.narrow(&Self::claims())
    }

    async fn try_acquire(&self, claim: &Claim) -> Result<Attempt> {
        match self.ask(Step::TryAcquire(claim.clone())).await? {
            Reply::Attempt(attempt) => Ok(attempt),
            _ => Err(other()),
        }
    }

    async fn renew(&self, renewals: &[Renewal], within: Duration) -> Vec<Result<LeaseStatus>> {
        let step = Step::Renew { renewals: renewals.to_vec(), within };
        let all = |error: Error| renewals.iter().map(|_| Err(error.clone())).collect();
        match self.ask(step).await {
            Ok(Reply::Statuses(statuses)) if statuses.len() == renewals.len() => {
                statuses.into_iter().map(|status| status.map_err(Error::from)).collect()
            }
            Ok(_) => all(other()),
            Err(error) => all(error),
        }
    }

    async fn release(&self, grant: &GrantRef) -> Result<LeaseStatus> {
        match self.ask(Step::Release(grant.clone())).await? {
            Reply::Status(status) => Ok(status),
            _ => Err(other()),
        }
    }

    async fn downgrade(&self, writer: &GrantRef, claim: &Claim) -> Result<Attempt> {
        match self.ask(Step::Downgrade { writer: writer.clone(), claim: claim.clone() }).await? {
            Reply::Attempt(attempt) => Ok(attempt),
            _ => Err(other()),
        }
    }

    async fn inspect(&self, key: &LockKey) -> Result<Holders> {
        match self.ask(Step::Inspect(key.clone())).await? {
            Reply::Holders(holders) => Ok(holders),
            _ => Err(other()),
        }
    }

    async fn list(&self, prefix: &str, after: Option<&Cursor>) -> Result<Page> {
        match self.ask(Step::List { prefix: prefix.to_owned(), after: after.cloned() }).await? {
            Reply::Page(page) => Ok(page),
            _ => Err(other()),
        }
    }

    async fn force_release(&self, key: &LockKey, only: Option<u64>) -> Result<Holders> {
        match self.ask(Step::ForceRelease { key: key.clone(), only }).await? {
            Reply::Holders(holders) => Ok(holders),
            _ => Err(other()),
        }
    }

    fn notifications(&self) -> Option<&dyn Notifications> {
        self.capabilities().has(Capability::Wakeup).then_some(self as _)
    }

    fn renewal_batch(&self) -> usize {
        self.served.renewal_batch
    }

    fn answers_within(&self) -> Duration {
        self.served.answers_within * 5 / 4 + HOP
    }

    async fn close(&self) {
        let connection = self.connection.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(connection) = connection {
            connection.end();
        }
    }
}

impl SharedBackend for AgentBackend {}

#[async_trait]
impl Notifications for AgentBackend {
    async fn subscribe(&self, key: &LockKey) -> Result<Box<dyn Subscription>> {
        let connection = self.connection().await?;
        let notified = connection.subscribe(&Step::Subscribe(key.clone()), self.answers_within()).await?;
        Ok(Box::new(notified))
    }
}

#[async_trait]
impl Subscription for Notified {
    async fn next(&mut self) -> Notification {
        Notified::next(self).await
    }
}

impl fmt::Debug for AgentBackend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AgentBackend")
            .field("path", &self.path)
            .field("store", &self.served.store)
            .finish_non_exhaustive()
    }
}
