use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use leasehold_core::{
    Attempt, Backend, Capabilities, Claim, Cursor, Error, ErrorKind, GrantRef, HandOff, Held, Holders, LockKey, Page,
    Renewal, Result, SharedBackend,
};
use leasehold_mysql::{Step, Value, named};

use crate::MysqlRwBackend;

/// The same store for those readers that were its writers a moment ago: a claim takes the writer's place over.
#[derive(Clone, Debug)]
pub(crate) struct StepDown {
    store: MysqlRwBackend,
    /// Who steps down, by key. A key has one writer.
    writers: Arc<Mutex<HashMap<LockKey, [u8; 16]>>>,
}

impl StepDown {
    pub(crate) fn new(store: MysqlRwBackend) -> Self {
        Self { store, writers: Arc::default() }
    }

    /// Notes down who is about to step down.
    ///
    /// # Errors
    /// [`ErrorKind::Indeterminate`] if its owner cannot be told.
    pub(crate) fn announce(&self, writer: &HandOff) -> Result<()> {
        let unclear = || Error::new(ErrorKind::Indeterminate, "downgrade").key(writer.key());
        let exposed = writer.expose();
        let owner = exposed.split(':').nth(1).and_then(|hex| u128::from_str_radix(hex, 16).ok());
        let owner = owner.ok_or_else(unclear)?.to_be_bytes();
        self.writers.lock().unwrap_or_else(PoisonError::into_inner).insert(writer.key().clone(), owner);
        Ok(())
    }
}

#[async_trait]
impl Backend for StepDown {
    fn capabilities(&self) -> Capabilities {
        self.store.capabilities()
    }

    async fn try_acquire(&self, claim: &Claim) -> Result<Attempt> {
        let writer = self.writers.lock().unwrap_or_else(PoisonError::into_inner).remove(&claim.key);
        match writer {
            Some(writer) => self.store.step_down(claim, &writer).await,
            None => Ok(Attempt::Busy { retry_in: None }),
        }
    }

    async fn renew(&self, renewals: &[Renewal], within: Duration) -> Vec<Result<Held>> {
        self.store.renew(renewals, within).await
    }

    async fn release(&self, grant: &GrantRef) -> Result<Held> {
        self.store.release(grant).await
    }

    async fn inspect(&self, key: &LockKey) -> Result<Holders> {
        self.store.inspect(key).await
    }

    async fn list(&self, prefix: &str, after: Option<&Cursor>) -> Result<Page> {
        self.store.list(prefix, after).await
    }

    async fn force_release(&self, key: &LockKey) -> Result<Holders> {
        self.store.force_release(key).await
    }

    fn renewal_batch(&self) -> usize {
        self.store.renewal_batch()
    }

    fn answers_within(&self) -> Duration {
        self.store.answers_within()
    }
}

impl SharedBackend for StepDown {}

impl MysqlRwBackend {
    /// The writer's number, the reader's row, and only then the writer's release.
    async fn step_down(&self, claim: &Claim, writer: &[u8; 16]) -> Result<Attempt> {
        let gone = Ok(Attempt::Busy { retry_in: None });
        let (name, writer) = (("name", self.name(&claim.key)), ("writer", Value::from(writer)));
        let run = |statement, params| self.sessions.run(Step::new("downgrade", statement).repeatable(), params);
        let drawn = run(&self.statements.step_down_draw, named([name.clone(), writer.clone()])).await?.id;
        if drawn == 0 {
            return gone;
        }
        let tenure = run(&self.statements.admit, self.admission(claim, writer.1.clone(), drawn)).await?.id;
        if tenure == 0 {
            return gone;
        }
        // The reader is in; whatever goes wrong now, it has to be taken back.
        let in_doubt = |failed: Error| Error::new(ErrorKind::Indeterminate, "downgrade").detail(failed.to_string());
        run(&self.statements.let_go_writer, named([name, ("owner", writer.1)])).await.map_err(in_doubt)?;
        Ok(Attempt::Granted { tenure: Some(tenure) })
    }
}
