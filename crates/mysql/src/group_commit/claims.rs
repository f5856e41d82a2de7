use std::fmt;

use leasehold_core::{Attempt, BoxFuture, Claim, GroupCommit, Operations, Result, Turns};
use mysql_async::Value;

use super::busy_keys::BusyKeys;
use crate::lease::statements::micros;
use crate::statement::params::text;

/// A claim, behind the name of the row that it is about.
pub type NamedClaim = (Vec<u8>, Claim);

/// The claims of one backend, of which the first ones of a key join others, and polls do not: where a key is busy, its row
/// often is, too, and all of a batch would wait for it.
pub struct GroupedClaims<O: Operations> {
    claims: GroupCommit<O>,
    busy: BusyKeys,
}

impl<O: Operations<Request = NamedClaim, Answer = Attempt>> GroupedClaims<O> {
    /// Carries out each claim alone unless it is `enabled`.
    pub fn new(operations: O, enabled: bool, turns: &Turns) -> Self {
        Self { claims: GroupCommit::new(operations, enabled, turns), busy: BusyKeys::default() }
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
            let is_poll = self.busy.has(&name);
            let attempt = if is_poll { self.claims.alone(request).await } else { self.claims.run(request).await };
            self.busy.note(&name, &attempt);
            attempt
        })
    }
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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use leasehold_core::{LockKey, Mode};

    use super::*;

    #[test]
    fn the_row_of_a_claim_says_who_wants_it_why_and_for_how_long() {
        let claim = Claim::new(&LockKey::new("k").unwrap(), Mode::Exclusive, Duration::from_millis(2));
        let claim = Claim { label: Some("who".into()), ..claim };
        let owner = Value::Bytes(claim.owner.as_bytes().to_vec());
        let expected = [Value::Bytes(b"n".to_vec()), "who".into(), Value::NULL, owner, Value::UInt(2_000)];
        assert_eq!(claim_row(&(b"n".to_vec(), claim)), expected);
    }
}
