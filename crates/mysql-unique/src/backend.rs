use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use leasehold_core::{
    Attempt, Backend, Capabilities, Capability, Claim, Cursor, Error, ErrorKind, FencingToken, GrantRef, Holder,
    Holders, LeaseStatus, LockKey, Mode, Notifications, OwnerId, Page, Renewal, Result,
};
use leasehold_mysql::{
    Columns, Doorbell, Namespace, Opened, RENEWAL_BATCH, Row, Sessions, Step, Sweep, Value, Walk, micros, named,
};

use crate::statements::Statements;

/// The store-level steps of [`MysqlUnique`](crate::MysqlUnique): one statement each.
#[derive(Clone, Debug)]
pub struct MysqlUniqueBackend {
    sessions: Sessions,
    namespace: Namespace,
    statements: Arc<Statements>,
    doorbell: Option<Doorbell>,
}

/// Set in the answer to a claim when the key is held; the rest is what is left of the lease.
const BUSY: u64 = 1 << 63;

/// How many keys a page has at most.
const PAGE: usize = 100;

impl MysqlUniqueBackend {
    pub(crate) const NAME: &'static str = "mysql-unique";

    pub(crate) fn new(opened: Opened) -> Self {
        let Opened { sessions, namespace, table, doorbell } = opened;
        Self { sessions, namespace, statements: Arc::new(Statements::new(&table)), doorbell }
    }

    /// What it claims without the doorbell. No I/O.
    pub(crate) fn claims() -> Capabilities {
        Capabilities::new(Self::NAME)
            .with(Capability::Lease)
            .with(Capability::Fencing)
            .with(Capability::CrossProcess)
            .with(Capability::CrossHost)
            .with(Capability::ForceNotice)
            .with(Capability::LocalHandoff)
            .with(Capability::Detach)
            .without(Capability::Shared, "exclusive only; leasehold-mysql-rw has readers")
            .without(Capability::Wakeup, "waiters poll unless the doorbell is on")
            .without(Capability::WriterIntent, "it has no readers to hold back")
    }

    fn name(&self, key: &LockKey) -> Value {
        Value::Bytes(self.namespace.name_of(key))
    }

    async fn claim(&self, claim: &Claim) -> Result<Attempt> {
        let text =
            |text: &Option<String>| text.as_ref().map_or(Value::NULL, |text| Value::Bytes(text.as_bytes().into()));
        let params = named([
            ("name", self.name(&claim.key)),
            ("owner", claim.owner.as_bytes().into()),
            ("ttl", micros(claim.ttl)),
            ("label", text(&claim.label)),
            ("reason", text(&claim.reason)),
        ]);
        let answer = self.sessions.run(Step::new("acquire", &self.statements.claim).repeatable(), params).await?.id;
        match answer {
            0 => Err(Error::new(ErrorKind::Indeterminate, "acquire").detail("the server's answer has no epoch in it")),
            busy if busy & BUSY != 0 => Ok(Attempt::Busy { retry_in: Some(Duration::from_micros(busy & !BUSY)) }),
            epoch => Ok(Attempt::Granted { epoch: Some(epoch) }),
        }
    }

    pub(crate) async fn collect(&self, older_than: Duration) -> Result<u64> {
        let age =
            Value::UInt(u64::try_from(older_than.max(Duration::from_secs(1)).as_millis()).unwrap_or(u64::MAX >> 2));
        let Statements { reach, idle, collect, .. } = &*self.statements;
        let walk = Walk::new(self.namespace.range_of(""), Vec::new());
        walk.sweep(&self.sessions, Sweep { reach, find: idle, delete: collect }, age).await
    }

    /// A key that is held, from a row with name, epoch, what is left, label and reason. `None`: the row is not ours.
    fn holders(&self, row: &Row) -> Result<Option<Holders>> {
        let mut columns = Columns::of(row, "inspect");
        let name: Vec<u8> = columns.take()?;
        let mut holder = Holder::new(Mode::Exclusive);
        holder.token = Some(FencingToken::of_epoch(columns.take()?));
        holder.remaining = Some(columns.micros()?);
        holder.label = columns.text()?;
        holder.reason = columns.text()?;
        Ok(self.namespace.key_of(&name).map(|key| Holders { key, holders: vec![holder] }))
    }
}

#[async_trait]
impl Backend for MysqlUniqueBackend {
    fn capabilities(&self) -> Capabilities {
        match self.doorbell {
            Some(_) => Self::claims().with(Capability::Wakeup),
            None => Self::claims(),
        }
    }

    async fn try_acquire(&self, claim: &Claim) -> Result<Attempt> {
        let Some(doorbell) = &self.doorbell else { return self.claim(claim).await };
        if let Some(time) = doorbell.puts_off(claim) {
            return Ok(Attempt::Busy { retry_in: Some(time) });
        }
        let attempt = self.claim(claim).await?;
        doorbell.answered(claim, attempt);
        Ok(attempt)
    }

    async fn renew(&self, renewals: &[Renewal], within: Duration) -> Vec<Result<LeaseStatus>> {
        let lease = |renewal: &Renewal| (self.namespace.name_of(&renewal.grant.key), renewal.grant.owner, renewal.ttl);
        let leases: Vec<_> = renewals.iter().map(lease).collect();
        let answers = self.statements.leases().renew(&self.sessions, &leases, within).await;
        if let Some(doorbell) = &self.doorbell {
            renewals.iter().zip(&answers).for_each(|(renewal, answer)| doorbell.renewed(renewal, answer));
        }
        answers
    }

    async fn release(&self, grant: &GrantRef) -> Result<LeaseStatus> {
        let params = named([("name", self.name(&grant.key)), ("owner", grant.owner.as_bytes().into())]);
        let reply = self.sessions.run(Step::new("release", &self.statements.let_go), params).await?;
        if let Some(doorbell) = &self.doorbell {
            doorbell.let_go(grant).await;
        }
        if reply.affected > 0 {
            return Ok(LeaseStatus::Held);
        }
        let name = self.namespace.name_of(&grant.key);
        self.statements.leases().why_not(&self.sessions, &name, grant.owner).await
    }

    async fn take_over(&self, grant: &GrantRef, new_owner: OwnerId, ttl: Duration) -> Result<LeaseStatus> {
        let name = self.namespace.name_of(&grant.key);
        self.statements.leases().take_over(&self.sessions, name, grant, new_owner, ttl).await
    }

    async fn inspect(&self, key: &LockKey) -> Result<Holders> {
        let params = named([("name", self.name(key))]);
        let reply = self.sessions.run(Step::new("inspect", &self.statements.inspect).repeatable(), params).await?;
        let found = reply.rows.first().map(|row| self.holders(row)).transpose()?.flatten();
        Ok(found.unwrap_or_else(|| Holders { key: key.clone(), holders: Vec::new() }))
    }

    async fn list(&self, prefix: &str, after: Option<&Cursor>) -> Result<Page> {
        let after = after.map_or_else(Vec::new, |after| self.namespace.followed_by(after.0.as_bytes()));
        let mut walk = Walk::new(self.namespace.range_of(prefix), after);
        let mut keys = Vec::new();
        loop {
            let stretch = walk.stretch(&self.sessions, "list", &[&self.statements.reach]).await?;
            let step = Step::new("list", &self.statements.list).repeatable();
            let rows = self.sessions.run(step, named(stretch.names())).await?.rows;
            for row in rows.iter().take(PAGE) {
                keys.extend(self.holders(row)?);
            }
            let full = rows.get(PAGE - 1).filter(|_| rows.len() > PAGE);
            let end = full.map(|row| Columns::of(row, "list").take()).transpose()?.or(stretch.last);
            let Some(end) = end else { return Ok(Page { keys, next: None }) };
            if let Some(key) = self.namespace.key_of(&end) {
                return Ok(Page { keys, next: Some(Cursor(key.as_str().to_owned())) });
            }
            // It ends at a row that is none of ours, and no page goes on from there.
            walk = walk.after(end);
        }
    }

    async fn force_release(&self, key: &LockKey) -> Result<Holders> {
        // Whoever is evicted is who was seen; if it changes hands in between, one more look.
        for _ in 0..8 {
            let seen = self.inspect(key).await?;
            let Some(token) = seen.holders.first().and_then(|holder| holder.token) else { return Ok(seen) };
            let params = named([("name", self.name(key)), ("epoch", Value::UInt(token.epoch()))]);
            let reply = self.sessions.run(Step::new("force-release", &self.statements.evict), params).await?;
            if reply.affected > 0 {
                return Ok(seen);
            }
        }
        Err(Error::new(ErrorKind::Unavailable, "force-release").detail("it changes hands too fast"))
    }

    fn notifications(&self) -> Option<&dyn Notifications> {
        self.doorbell.as_ref().map(|doorbell| doorbell as _)
    }

    fn renewal_batch(&self) -> usize {
        RENEWAL_BATCH
    }

    fn answers_within(&self) -> Duration {
        Step::LIMIT
    }

    async fn close(&self) {
        if let Some(doorbell) = &self.doorbell {
            doorbell.close().await;
        }
        self.sessions.close().await;
    }
}
