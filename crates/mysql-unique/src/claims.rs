use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use leasehold_core::{Attempt, Claim, Error, ErrorKind, OwnerId, Result};
use leasehold_mysql::{
    Answers, Apart, BoxFuture, Columns, NamedClaim, Operations, Params, Sessions, Step, batch, claim_again,
    claim_params, claim_row, named,
};

use crate::sql::Statements;

/// The claims on one table.
#[derive(Debug)]
pub(crate) struct Claims {
    sessions: Sessions,
    statements: Arc<Statements>,
}

/// The bit of the answer to a claim that says that the key is held. The other bits are then the microseconds that are
/// left of the lease.
const BUSY: u64 = 1 << 63;

impl Claims {
    pub(crate) fn new(sessions: &Sessions, statements: &Arc<Statements>) -> Self {
        Self { sessions: sessions.clone(), statements: Arc::clone(statements) }
    }

    async fn one(&self, name: &[u8], claim: &Claim) -> Result<Attempt> {
        let step = Step::new(Self::NAME, &self.statements.try_acquire).repeatable();
        match self.sessions.run(step, named(claim_params(name.to_vec(), claim))).await?.id {
            0 => Err(Error::new(ErrorKind::Indeterminate, Self::NAME).detail("the server's answer has no epoch in it")),
            busy if busy & BUSY != 0 => Ok(Attempt::Busy { retry_in: Some(Duration::from_micros(busy & !BUSY)) }),
            epoch => Ok(Attempt::Granted { epoch: Some(epoch) }),
        }
    }

    async fn many(&self, requests: &[&NamedClaim]) -> Result<Answers<Self>> {
        let rows: Vec<_> = requests.iter().map(|request| claim_row(request)).collect();
        let (claim, params) = batch(&self.statements.try_acquire_batch, &rows, &[]);
        let (outcome, names) = batch(&self.statements.claimed, &rows, &[]);
        let (step, outcome) = (Step::new(Self::NAME, &claim).repeatable(), (&*outcome, Params::Positional(names)));
        let reply = match self.sessions.run_batch(step, Params::Positional(params), outcome, None).await? {
            Ok(reply) => reply,
            Err(Apart::Untouched) => return Ok(requests.iter().map(|_| None).collect()),
            Err(Apart::InDoubt) => return Ok(claim_again(self, requests).await),
        };
        let mut held = HashMap::new();
        for row in &reply.rows {
            let mut columns = Columns::of(row, Self::NAME);
            held.insert(columns.get::<Vec<u8>>()?, (columns.get()?, columns.get()?, columns.micros()?));
        }
        Ok(requests.iter().map(|(name, claim)| Some(Ok(attempt(held.get(name), claim.owner)))).collect())
    }
}

/// What became of a claim of this owner, by who holds the key after it: owner, epoch, what is left of the lease.
fn attempt(holder: Option<&(Vec<u8>, u64, Duration)>, owner: OwnerId) -> Attempt {
    match holder {
        Some((holder, epoch, _)) if holder == owner.as_bytes() => Attempt::Granted { epoch: Some(*epoch) },
        Some((_, _, left)) => Attempt::Busy { retry_in: Some(*left) },
        // Or the lease in its way has just ended.
        None => Attempt::AHEAD_OF_THE_CLOCK,
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
