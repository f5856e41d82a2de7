use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use leasehold_core::{Attempt, Claim, Error, ErrorKind, LeaseStatus, OwnerId, Result};
use leasehold_mysql::{
    Answers, Apart, BoxFuture, Columns, GroupCommit, NamedClaim, Operations, Params, Releases, Row, Sessions, Step,
    Value, batch, claim_again, claim_params, claim_row, named,
};

use crate::row::{answer, run_on_row};
use crate::sql::Statements;

/// The claims of writers.
#[derive(Debug)]
pub(crate) struct Claims {
    sessions: Sessions,
    statements: Arc<Statements>,
    /// Whose mark the mark of a waiting writer is. Its claims cannot say so, because each has another owner.
    client: OwnerId,
    releases: Arc<GroupCommit<Releases>>,
}

impl Claims {
    pub(crate) fn new(
        sessions: &Sessions,
        statements: &Arc<Statements>,
        releases: &Arc<GroupCommit<Releases>>,
    ) -> Self {
        let (sessions, statements, releases) = (sessions.clone(), Arc::clone(statements), Arc::clone(releases));
        Self { sessions, statements, client: OwnerId::random(), releases }
    }

    /// Claims the key, so that no further reader is admitted. The writer is granted if no reader is left.
    async fn one(&self, name: &[u8], claim: &Claim) -> Result<Attempt> {
        let ours = [("client", self.client.as_bytes().into()), ("waits", Value::from(claim.waits))];
        let params = named(claim_params(name.to_vec(), claim).into_iter().chain(ours));
        let statement = &self.statements.try_acquire_writer;
        match answer(&run_on_row(&self.sessions, &self.statements, statement, name, params).await?)? {
            busy @ Attempt::Busy { .. } => Ok(busy),
            granted => self.drain_or_give_up(name, claim, granted).await,
        }
    }

    /// Claims the keys that nobody seems to read. A key that is read is left to a claim of its own, which knows how to wait for
    /// readers, and which looks for them while it has the row of the key locked: in a batch that would lock readers of one key
    /// out while it waits for the row of another, and be a deadlock with those that are admitted there.
    async fn many(&self, requests: &[&NamedClaim]) -> Result<Answers<Self>> {
        let names: Vec<_> = requests.iter().map(|(name, _)| vec![Value::Bytes(name.clone())]).collect();
        let (read_keys, params) = batch(&self.statements.read_keys, &names, &[]);
        let step = Step::new(Self::NAME, &read_keys).repeatable();
        let read = self.sessions.run(step, Params::Positional(params)).await?;
        let name = |row: &Row| Columns::of(row, Self::NAME).get::<Vec<u8>>();
        let read: HashSet<_> = read.rows.iter().map(name).collect::<Result<_>>()?;
        let unread: Vec<_> = requests.iter().filter(|(name, _)| !read.contains(name)).copied().collect();
        let mut answers = self.claim_unread(&unread).await?.into_iter();
        let answer = |(name, _): &&NamedClaim| if read.contains(name) { None } else { answers.next().flatten() };
        Ok(requests.iter().map(answer).collect())
    }

    async fn claim_unread(&self, requests: &[&NamedClaim]) -> Result<Answers<Self>> {
        if requests.is_empty() {
            return Ok(Vec::new());
        }
        let rows: Vec<_> = requests.iter().map(|request| claim_row(request)).collect();
        let (claim, mut params) = batch(&self.statements.try_acquire_writer_batch, &rows, &[]);
        params.push(self.client.as_bytes().into());
        let (outcome, names) = batch(&self.statements.claimed, &rows, &[]);
        let (step, outcome) = (Step::new(Self::NAME, &claim).repeatable(), (&*outcome, Params::Positional(names)));
        let reply = match self.sessions.run_batch(step, Params::Positional(params), outcome, None).await? {
            Ok(reply) => reply,
            Err(Apart::Untouched) => return Ok(requests.iter().map(|_| None).collect()),
            Err(Apart::InDoubt) => return Ok(claim_again(self, requests).await),
        };
        let mut found = HashMap::new();
        for row in &reply.rows {
            let mut columns = Columns::of(row, Self::NAME);
            found.insert(columns.get::<Vec<u8>>()?, Found::read(columns)?);
        }
        Ok(requests
            .iter()
            .map(|(name, claim)| found.get(name).and_then(|found| found.attempt(claim)).map(Ok))
            .collect())
    }

    /// Drains the readers. A claim whose drain failed would keep everybody out for the whole of its lease: it is released,
    /// or, if that fails too, the outcome is reported as unknown, so that the engine releases the claim later.
    async fn drain_or_give_up(&self, name: &[u8], claim: &Claim, granted: Attempt) -> Result<Attempt> {
        let failed = match self.drain(name, claim, granted).await {
            Ok(attempt) => return Ok(attempt),
            Err(failed) => failed,
        };
        match self.releases.run((name.to_vec(), claim.owner)).await {
            Ok(_) => Err(failed),
            Err(_) => Err(Error::new(ErrorKind::Indeterminate, Self::NAME).detail(failed.to_string())),
        }
    }

    /// Looks for readers after a claim. Those whose lease ran out are deleted. If others are left, the claim becomes the mark
    /// of a waiting writer, or is released if its owner does not wait.
    async fn drain(&self, name: &[u8], claim: &Claim, granted: Attempt) -> Result<Attempt> {
        let named_row = || ("name", Value::Bytes(name.to_vec()));
        let mut left = self.count_readers(name, claim).await?;
        if left.as_ref().is_some_and(|left| left.expired > 0) {
            let step = Step::new(Self::NAME, &self.statements.delete_expired_readers).repeatable();
            self.sessions.run(step, named([named_row()])).await?;
            left = self.count_readers(name, claim).await?;
        }
        match left {
            Some(ReadersLeft { readers: 0, .. }) => return Ok(granted),
            // This writer has lost its claim. To a forced release it was the holder, and is what it has named.
            None => {
                let status = self.statements.writers().why_not_released(&self.sessions, name.to_vec(), claim.owner);
                if status.await? == LeaseStatus::ForceReleased {
                    return Ok(granted);
                }
            }
            Some(_) if claim.waits => {
                let (owner, client) = (claim.owner.as_bytes().into(), self.client.as_bytes().into());
                let params = named([named_row(), ("owner", owner), ("client", client)]);
                let step = Step::new(Self::NAME, &self.statements.mark_waiting_writer).repeatable();
                self.sessions.run(step, params).await?;
            }
            Some(_) => {
                self.releases.run((name.to_vec(), claim.owner)).await?;
            }
        }
        Ok(Attempt::Busy { retry_in: None })
    }

    /// Counts the readers of a key. `None`: the writer has lost its claim.
    async fn count_readers(&self, name: &[u8], claim: &Claim) -> Result<Option<ReadersLeft>> {
        let params = named([("name", Value::Bytes(name.to_vec())), ("owner", claim.owner.as_bytes().into())]);
        let step = Step::new(Self::NAME, &self.statements.count_readers).repeatable();
        let reply = self.sessions.run(step, params).await?;
        let Some(row) = reply.rows.first() else { return Ok(None) };
        let mut columns = Columns::of(row, Self::NAME);
        Ok(Some(ReadersLeft { readers: columns.get()?, expired: columns.get()? }))
    }
}

/// The readers that a writer finds after its claim.
struct ReadersLeft {
    /// The readers that were not released by force, with those whose lease ran out.
    readers: u64,
    /// The rows whose lease ran out.
    expired: u64,
}

/// The row of a key after a batch of claims.
struct Found {
    /// Who holds the key, or has its mark there; with a lease that is not over.
    writer: Option<Vec<u8>>,
    epoch: u64,
    /// What is left of the lease, or of the readers' turn.
    left: Duration,
    /// The rows of readers, whatever became of their leases.
    readers: u64,
}

impl Found {
    fn read(mut columns: Columns<'_>) -> Result<Self> {
        let (writer, epoch) = (columns.get()?, columns.get()?);
        Ok(Self { writer, epoch, left: columns.micros()?, readers: columns.get()? })
    }

    /// What became of a claim. `None`: that is for a claim of its own to find out, because there are readers.
    fn attempt(&self, claim: &Claim) -> Option<Attempt> {
        let is_ours = self.writer.as_deref() == Some(claim.owner.as_bytes().as_slice());
        match (is_ours, self.readers) {
            (true, 0) => Some(Attempt::Granted { epoch: Some(self.epoch) }),
            (true, _) => None,
            // Or what was in its way has just ended.
            (false, _) if self.left.is_zero() => Some(Attempt::AHEAD_OF_THE_CLOCK),
            (false, _) => Some(Attempt::Busy { retry_in: Some(self.left) }),
        }
    }
}

impl Operations for Claims {
    type Request = NamedClaim;
    type Answer = Attempt;
    const NAME: &'static str = "acquire";

    fn row((name, _): &Self::Request) -> Option<&[u8]> {
        Some(name)
    }

    fn alone<'a>(&'a self, (name, claim): &'a Self::Request) -> BoxFuture<'a, Result<Attempt>> {
        Box::pin(self.one(name, claim))
    }

    fn together<'a>(&'a self, requests: &'a [&'a Self::Request]) -> BoxFuture<'a, Result<Answers<Self>>> {
        Box::pin(self.many(requests))
    }
}
