use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use leasehold_core::{
    Attempt, Backend, Capabilities, Capability, Claim, Cursor, Error, ErrorKind, GrantRef, Holders, LeaseStatus,
    LockKey, Mode, OwnerId, Page, Renewal, Result, SharedBackend,
};
use leasehold_mysql::{Namespace, Opened, Params, RENEWAL_BATCH, Reply, Sessions, Step, TableName, Value, named};

use crate::readers::Drawing;
use crate::statements::Statements;

/// The store-level steps of [`MysqlRw`](crate::MysqlRw).
#[derive(Clone, Debug)]
pub struct MysqlRwBackend {
    pub(crate) sessions: Sessions,
    pub(crate) namespace: Namespace,
    pub(crate) statements: Arc<Statements>,
    /// Whose mark a mark is: every attempt has another owner.
    pub(crate) client: OwnerId,
    pub(crate) drawing: Arc<Drawing>,
}

/// Set in the answer when somebody is in the way; the rest is what is left of the lease, or zero.
const BUSY: u64 = 1 << 63;

impl MysqlRwBackend {
    pub(crate) const NAME: &'static str = "mysql-rw";

    pub(crate) fn new(opened: Opened, readers: &TableName) -> Self {
        let Opened { sessions, namespace, table, .. } = opened;
        let statements = Arc::new(Statements::new(&table, readers));
        Self { sessions, namespace, statements, client: OwnerId::random(), drawing: Arc::default() }
    }

    /// What it claims. No I/O.
    pub(crate) fn claims() -> Capabilities {
        Capabilities::new(Self::NAME)
            .with(Capability::Shared)
            .with(Capability::Lease)
            .with(Capability::Fencing)
            .with(Capability::CrossProcess)
            .with(Capability::CrossHost)
            .with(Capability::WriterIntent)
            .with(Capability::ForceNotice)
            .with(Capability::LocalHandoff)
            .with(Capability::Detach)
            .without(Capability::Wakeup, "MySQL has no signal of a release; waiters poll")
    }

    pub(crate) fn name(&self, key: &LockKey) -> Value {
        Value::Bytes(self.namespace.name_of(key))
    }

    /// Runs a statement on the key's row, which it creates if there is none.
    pub(crate) async fn run_on_row(
        &self,
        statement: &str,
        key: &LockKey,
        params: impl Fn() -> Params,
    ) -> Result<Reply> {
        let step = Step::new("acquire", statement).repeatable();
        let reply = self.sessions.run(step, params()).await?;
        if reply.id != 0 {
            return Ok(reply);
        }
        let name = named([("name", self.name(key))]);
        self.sessions.run(Step::new("acquire", &self.statements.create).repeatable(), name).await?;
        self.sessions.run(step, params()).await
    }
}

pub(crate) fn text(text: Option<&String>) -> Value {
    text.map_or(Value::NULL, |text| Value::Bytes(text.as_bytes().into()))
}

/// The verdict in the OK packet of a statement on the key's row.
pub(crate) fn answer(reply: &Reply) -> Result<Attempt> {
    match reply.id {
        0 => Err(Error::new(ErrorKind::Indeterminate, "acquire").detail("the key's row is gone, or its answer")),
        BUSY => Ok(Attempt::Busy { retry_in: None }),
        busy if busy & BUSY != 0 => Ok(Attempt::Busy { retry_in: Some(Duration::from_micros(busy & !BUSY)) }),
        epoch => Ok(Attempt::Granted { epoch: Some(epoch) }),
    }
}

#[async_trait]
impl Backend for MysqlRwBackend {
    fn capabilities(&self) -> Capabilities {
        Self::claims()
    }

    async fn try_acquire(&self, claim: &Claim) -> Result<Attempt> {
        match claim.mode {
            Mode::Exclusive => self.claim_to_write(claim).await,
            Mode::Shared => self.claim_to_read(claim).await,
        }
    }

    async fn renew(&self, renewals: &[Renewal], within: Duration) -> Vec<Result<LeaseStatus>> {
        let is_writer = |renewal: &Renewal| renewal.grant.mode == Mode::Exclusive;
        let leases = |writers: bool| -> Vec<_> {
            let these = renewals.iter().filter(|renewal| is_writer(renewal) == writers);
            these
                .map(|renewal| (self.namespace.name_of(&renewal.grant.key), renewal.grant.owner, renewal.ttl))
                .collect()
        };
        let mut writers = self.statements.writers().renew(&self.sessions, &leases(true), within).await.into_iter();
        let mut readers = self.statements.readers().renew(&self.sessions, &leases(false), within).await.into_iter();
        let answer = |renewal| if is_writer(renewal) { writers.next() } else { readers.next() };
        renewals.iter().map(answer).map(|answer| answer.unwrap_or(Ok(LeaseStatus::NotHeld))).collect()
    }

    async fn release(&self, grant: &GrantRef) -> Result<LeaseStatus> {
        match grant.mode {
            Mode::Exclusive => self.let_go_writer(grant).await,
            Mode::Shared => self.let_go_reader(grant).await,
        }
    }

    async fn take_over(&self, grant: &GrantRef, new_owner: OwnerId, ttl: Duration) -> Result<LeaseStatus> {
        let leases = match grant.mode {
            Mode::Exclusive => self.statements.writers(),
            Mode::Shared => self.statements.readers(),
        };
        leases.take_over(&self.sessions, self.namespace.name_of(&grant.key), grant, new_owner, ttl).await
    }

    async fn downgrade(&self, writer: &GrantRef, claim: &Claim) -> Result<Attempt> {
        self.writer_to_reader(writer, claim).await
    }

    async fn inspect(&self, key: &LockKey) -> Result<Holders> {
        self.holders_of(key).await
    }

    async fn list(&self, prefix: &str, after: Option<&Cursor>) -> Result<Page> {
        self.page(prefix, after).await
    }

    async fn force_release(&self, key: &LockKey) -> Result<Holders> {
        self.evict(key).await
    }

    fn renewal_batch(&self) -> usize {
        RENEWAL_BATCH
    }

    fn answers_within(&self) -> Duration {
        Step::LIMIT
    }

    async fn close(&self) {
        self.sessions.close().await;
    }
}

impl SharedBackend for MysqlRwBackend {}
