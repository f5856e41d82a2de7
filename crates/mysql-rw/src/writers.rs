use leasehold_core::{Attempt, Claim, Error, ErrorKind, GrantRef, LeaseStatus, Result};
use leasehold_mysql::{Columns, Step, Value, micros, named};

use crate::MysqlRwBackend;
use crate::backend::{answer, text};

/// What a look at the readers after a claim found.
struct Found {
    /// The readers that are left, alive or not.
    readers: u64,
    /// The rows whose lease ran out.
    dead: u64,
}

impl MysqlRwBackend {
    /// Claims, so that no reader comes in any more, and is granted if none is left.
    pub(crate) async fn claim_to_write(&self, claim: &Claim) -> Result<Attempt> {
        let params = || {
            named([
                ("name", self.name(&claim.key)),
                ("owner", claim.owner.as_bytes().into()),
                ("client", self.client.as_bytes().into()),
                ("waits", Value::from(claim.waits)),
                ("ttl", micros(claim.ttl)),
                ("label", text(claim.label.as_ref())),
                ("reason", text(claim.reason.as_ref())),
            ])
        };
        let reply = self.run_on_row(&self.statements.claim, &claim.key, params).await?;
        match answer(&reply)? {
            busy @ Attempt::Busy { .. } => Ok(busy),
            granted => self.drain_or_give_up(claim, granted).await,
        }
    }

    /// A claim whose drain failed would bar everybody for the whole of its lease: it is taken back, or, if that fails
    /// too, reported as what it is, so that it is taken back later.
    async fn drain_or_give_up(&self, claim: &Claim, granted: Attempt) -> Result<Attempt> {
        let failed = match self.drain(claim, granted).await {
            Ok(attempt) => return Ok(attempt),
            Err(failed) => failed,
        };
        match self.let_go_writer(&claim.grant(None)).await {
            Ok(_) => Err(failed),
            Err(_) => Err(Error::new(ErrorKind::Indeterminate, "acquire").detail(failed.to_string())),
        }
    }

    /// Looks for readers after a claim. Those whose lease ran out are evicted; for the others, the claim becomes a mark
    /// if its owner waits, and is given up if not.
    async fn drain(&self, claim: &Claim, granted: Attempt) -> Result<Attempt> {
        let mut found = self.readers_left(claim).await?;
        if found.as_ref().is_some_and(|found| found.dead > 0) {
            let params = named([("name", self.name(&claim.key))]);
            self.sessions.run(Step::new("acquire", &self.statements.purge).repeatable(), params).await?;
            found = self.readers_left(claim).await?;
        }
        match found {
            Some(Found { readers: 0, .. }) => return Ok(granted),
            // The claim is not ours any more.
            None => {}
            Some(_) if claim.waits => {
                let owner = claim.owner.as_bytes().into();
                let params = named([
                    ("name", self.name(&claim.key)),
                    ("owner", owner),
                    ("client", self.client.as_bytes().into()),
                ]);
                self.sessions.run(Step::new("acquire", &self.statements.mark).repeatable(), params).await?;
            }
            Some(_) => {
                self.let_go_writer(&claim.grant(None)).await?;
            }
        }
        Ok(Attempt::Busy { retry_in: None })
    }

    /// `None`: the claim is not ours any more.
    async fn readers_left(&self, claim: &Claim) -> Result<Option<Found>> {
        let params = named([("name", self.name(&claim.key)), ("owner", claim.owner.as_bytes().into())]);
        let reply = self.sessions.run(Step::new("acquire", &self.statements.drain).repeatable(), params).await?;
        let Some(row) = reply.rows.first() else { return Ok(None) };
        let mut columns = Columns::of(row, "acquire");
        Ok(Some(Found { readers: columns.take()?, dead: columns.take()? }))
    }

    pub(crate) async fn let_go_writer(&self, grant: &GrantRef) -> Result<LeaseStatus> {
        let params = named([("name", self.name(&grant.key)), ("owner", grant.owner.as_bytes().into())]);
        let reply = self.sessions.run(Step::new("release", &self.statements.let_go_writer), params).await?;
        if reply.affected > 0 {
            return Ok(LeaseStatus::Held);
        }
        let name = self.namespace.name_of(&grant.key);
        self.statements.writers().why_not(&self.sessions, &name, grant.owner).await
    }
}
