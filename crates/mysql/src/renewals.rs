use std::cmp::Reverse;
use std::collections::HashMap;
use std::time::Duration;

use leasehold_core::{Error, GrantRef, LeaseStatus, LockOptions, OwnerId, Result};
use mysql_async::{Params, Value};

use crate::batch::{Target, each};
use crate::{Columns, Sessions, Step, named};

/// The most leases that one statement prolongs: beyond it nothing is gained, and the rows of a batch stay locked
/// longer.
pub const RENEWAL_BATCH: usize = 128;

/// The statements about the rows of a table that are leases, each with a name and an owner. See [`each`].
#[derive(Clone, Copy, Debug)]
pub struct Leases<'s> {
    /// Prolongs.
    pub extend: &'s str,
    /// Answers name, who holds, and who was released by force, each of whom may be nobody.
    pub look: &'s str,
    /// Gives a row to a new owner, if `:owner` has it with this `:epoch`, and prolongs its lease to `:ttl`.
    pub take_over: &'s str,
}

/// One lease: the row's name, its owner and the lease to give it.
pub type Lease = (Vec<u8>, OwnerId, Duration);

impl Leases<'_> {
    /// Prolongs leases that are still their owner's, up to [`RENEWAL_BATCH`] in one statement, and answers in their order.
    ///
    /// Where fewer rows changed than there are leases, one query says which: never the count, which depends on the
    /// client's flags.
    pub async fn renew(self, sessions: &Sessions, leases: &[Lease], within: Duration) -> Vec<Result<LeaseStatus>> {
        let limit = within.min(Step::LIMIT);
        // Once each, with the longest that was asked for: a statement prolongs a row once, and all of them are promised.
        // In one order everywhere, so that no two batches lock rows crosswise.
        let mut rows: Vec<&Lease> = leases.iter().collect();
        rows.sort_by_cached_key(|lease| (place(lease), Reverse(lease.2)));
        rows.dedup_by(|shorter, longest| place(shorter) == place(longest));
        let mut answers: HashMap<Place, Result<LeaseStatus>> = HashMap::new();
        for batch in rows.chunks(RENEWAL_BATCH) {
            let held = self.renew_batch(sessions, batch, limit).await;
            answers.extend(batch.iter().map(|lease| {
                let place = place(lease);
                let answer = held.as_ref().map(|held| held.get(&place).copied().unwrap_or(LeaseStatus::NotHeld));
                (place, answer.map_err(Error::retell))
            }));
        }
        let answer = |lease| match answers.get(&place(lease)) {
            Some(Ok(held)) => Ok(*held),
            Some(Err(error)) => Err(error.retell()),
            None => Ok(LeaseStatus::NotHeld),
        };
        leases.iter().map(answer).collect()
    }

    async fn renew_batch(
        self,
        sessions: &Sessions,
        batch: &[&Lease],
        limit: Duration,
    ) -> Result<HashMap<Place, LeaseStatus>> {
        let (extend, params) = self.extending(batch);
        let step = Step::new("renew", &extend).reserved().repeatable().limit(limit);
        let reply = sessions.run(step, Params::Positional(params)).await?;
        let places: Vec<Place> = batch.iter().map(|lease| place(lease)).collect();
        if reply.affected == places.len() as u64 {
            return Ok(places.into_iter().map(|place| (place, LeaseStatus::Held)).collect());
        }
        self.held(sessions, "renew", &places, limit).await
    }

    /// The statement that prolongs these.
    pub fn extending(self, batch: &[&Lease]) -> (String, Vec<Value>) {
        let row = |(name, owner, ttl): &&Lease| Target {
            identity: vec![Value::Bytes(name.clone()), owner.as_bytes().into()],
            micros: Some(micros(*ttl)),
        };
        each(self.extend, &batch.iter().map(row).collect::<Vec<_>>())
    }

    /// The statement that looks at these.
    pub fn looking(self, places: &[Place]) -> (String, Vec<Value>) {
        let row = |(name, owner): &Place| Target::of([Value::Bytes(name.clone()), Value::Bytes(owner.clone())]);
        each(self.look, &places.iter().map(row).collect::<Vec<_>>())
    }

    /// Which of these are held, and which were released by force; the rest is neither.
    async fn held(
        self,
        sessions: &Sessions,
        operation: &'static str,
        places: &[Place],
        limit: Duration,
    ) -> Result<HashMap<Place, LeaseStatus>> {
        let (look, params) = self.looking(places);
        let step = Step::new(operation, &look).reserved().repeatable().limit(limit);
        let reply = sessions.run(step, Params::Positional(params)).await?;
        let mut held = HashMap::new();
        for row in &reply.rows {
            let mut columns = Columns::of(row, operation);
            let name: Vec<u8> = columns.take()?;
            let (holds, forced): (Option<Vec<u8>>, Option<Vec<u8>>) = (columns.take()?, columns.take()?);
            held.extend(forced.map(|owner| ((name.clone(), owner), LeaseStatus::ForceReleased)));
            held.extend(holds.map(|owner| ((name, owner), LeaseStatus::Held)));
        }
        Ok(held)
    }

    /// Gives the row of a grant to a new owner, who may have it from a statement that was sent before.
    ///
    /// # Errors
    /// As for [`Sessions::run`].
    pub async fn take_over(
        self,
        sessions: &Sessions,
        name: Vec<u8>,
        grant: &GrantRef,
        new_owner: OwnerId,
        ttl: Duration,
    ) -> Result<LeaseStatus> {
        let params = named([
            ("name", Value::Bytes(name.clone())),
            ("owner", grant.owner.as_bytes().into()),
            ("epoch", grant.epoch.map_or(Value::NULL, Value::UInt)),
            ("new_owner", new_owner.as_bytes().into()),
            ("ttl", micros(ttl)),
        ]);
        if sessions.run(Step::new("attach", self.take_over).repeatable(), params).await?.affected > 0 {
            return Ok(LeaseStatus::Held);
        }
        let [new, old] = [new_owner, grant.owner].map(|owner| (name.clone(), owner.as_bytes().to_vec()));
        let held = self.held(sessions, "attach", &[new.clone(), old.clone()], Step::LIMIT).await?;
        match (held.get(&new), held.get(&old)) {
            (Some(LeaseStatus::Held), _) => Ok(LeaseStatus::Held),
            (_, Some(LeaseStatus::ForceReleased)) => Ok(LeaseStatus::ForceReleased),
            _ => Ok(LeaseStatus::NotHeld),
        }
    }

    /// Why a statement that was to change this row did not: released by force, or simply not ours.
    ///
    /// # Errors
    /// As for [`Sessions::run`].
    pub async fn why_not(self, sessions: &Sessions, name: &[u8], owner: OwnerId) -> Result<LeaseStatus> {
        let place = (name.to_vec(), owner.as_bytes().to_vec());
        let held = self.held(sessions, "release", std::slice::from_ref(&place), Step::LIMIT).await?;
        Ok(if held.get(&place) == Some(&LeaseStatus::ForceReleased) {
            LeaseStatus::ForceReleased
        } else {
            LeaseStatus::NotHeld
        })
    }
}

/// A row by its name and its owner.
pub type Place = (Vec<u8>, Vec<u8>);

fn place((name, owner, _): &Lease) -> Place {
    (name.clone(), owner.as_bytes().to_vec())
}

/// A lease as a parameter. A huge interval would wrap around in the server.
pub fn micros(ttl: Duration) -> Value {
    Value::UInt(u64::try_from(ttl.min(LockOptions::MAX_TTL).as_micros()).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_lease_wraps_around() {
        assert_eq!(micros(Duration::MAX), Value::UInt(86_400_000_000));
        assert_eq!(micros(Duration::from_millis(10)), Value::UInt(10_000));
    }
}
