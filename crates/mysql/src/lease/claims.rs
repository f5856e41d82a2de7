use std::fmt;

use leasehold_core::{Answers, Attempt, BoxFuture, Claim, Error, GroupCommit, Operations, Result, Turns};
use mysql_async::Value;

use super::busy_rows::BusyRows;
use super::statements::micros;
use crate::server::sessions::in_doubt;
use crate::statement::params::text;

/// A claim, behind the name of the row that it is about.
pub type NamedClaim = (Vec<u8>, Claim);

/// The claims of one backend, of which the first ones of a key join others. Those that follow one that was not granted do not:
/// where a key is busy, its row often is, too, or a stranger has it locked, and all of a batch would wait for it.
pub struct GroupedClaims<O: Operations> {
    claims: GroupCommit<O>,
    busy: BusyRows,
}

impl<O: Operations<Request = NamedClaim, Answer = Attempt>> GroupedClaims<O> {
    /// Carries out each claim alone unless it is `enabled`.
    pub fn new(operations: O, enabled: bool, turns: &Turns) -> Self {
        Self { claims: GroupCommit::new(operations, enabled, turns), busy: BusyRows::default() }
    }

    /// Carries out a claim, with others if others come in at the same time.
    ///
    /// # Errors
    /// As for [`GroupCommit::run`].
    ///
    /// # Cancel safety
    /// As for [`GroupCommit::run`].
    pub fn run(&self, request: NamedClaim) -> BoxFuture<'_, Result<Attempt>> {
        Box::pin(async move {
            let name = request.0.clone();
            let goes_alone = self.busy.has(&name);
            let attempt = if goes_alone { self.claims.alone(request).await } else { self.claims.run(request).await };
            self.busy.note(&name, !matches!(attempt, Ok(Attempt::Granted { .. })));
            attempt
        })
    }
}

/// Claims one by one what a batch may have granted already. Of that, an error says nothing: what was not sent alone may be held all
/// the same, and has to be released.
pub fn claim_again<'a, O>(operations: &'a O, requests: &'a [&'a NamedClaim]) -> BoxFuture<'a, Answers<O>>
where
    O: Operations<Request = NamedClaim, Answer = Attempt>,
{
    Box::pin(async move {
        let mut answers: Answers<O> = Vec::new();
        let mut doubt = None;
        for request in requests {
            let answer = match &doubt {
                // Where the server is gone, each of the others would wait for the same.
                Some(error) => Err(Error::clone(error)),
                None => operations.alone(request).await.map_err(|error| in_doubt(O::NAME, &error)),
            };
            doubt = answer.as_ref().err().cloned();
            answers.push(Some(answer));
        }
        answers
    })
}

/// The parameters of a statement about one claim: `name`, `owner`, `ttl`, `label` and `reason`.
pub fn claim_params(name: Vec<u8>, claim: &Claim) -> [(&'static str, Value); 5] {
    [
        ("name", Value::Bytes(name)),
        ("owner", claim.owner.as_bytes().into()),
        ("ttl", micros(claim.ttl)),
        ("label", text(claim.label.as_deref())),
        ("reason", text(claim.reason.as_deref())),
    ]
}

/// The values of a claim, as a statement about a [`batch`](crate::batch()) of claims takes them: name, label, reason, owner,
/// lease in microseconds.
pub fn claim_row((name, claim): &NamedClaim) -> Vec<Value> {
    let [label, reason] = [&claim.label, &claim.reason].map(|given| text(given.as_deref()));
    vec![Value::Bytes(name.clone()), label, reason, claim.owner.as_bytes().into(), micros(claim.ttl)]
}

impl<O: Operations> fmt::Debug for GroupedClaims<O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.claims.fmt(f)
    }
}
