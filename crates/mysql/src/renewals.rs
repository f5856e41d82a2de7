use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use leasehold_core::{Error, Held, LockOptions, OwnerId, Result};
use mysql_async::{Params, Value};

use crate::{Columns, Sessions, Step};

/// The most leases that one statement prolongs: beyond it nothing is gained, and the rows of a batch stay locked
/// longer.
pub const RENEWAL_BATCH: usize = 250;

/// A table whose rows are leases, each with a name and an owner, and the statements about them.
#[derive(Clone, Debug)]
pub struct Table {
    /// Prolongs: one `?` for the microseconds, and `{pairs}`.
    pub extend: String,
    /// Answers name, owner, and 1 for those who hold or 2 for those who were released by force. `{pairs}` twice.
    pub look: String,
}

/// One lease: the row's name, its owner and the lease to give it.
type Lease = (Vec<u8>, OwnerId, Duration);

impl Table {
    /// Prolongs leases that are still their owner's, up to [`RENEWAL_BATCH`] in one statement, and answers in their order.
    ///
    /// Where fewer rows changed than there are leases, one query says which: never the count, which depends on the
    /// client's flags.
    pub async fn renew(&self, sessions: &Sessions, leases: &[Lease]) -> Vec<Result<Held>> {
        let mut by_ttl: BTreeMap<Duration, Vec<usize>> = BTreeMap::new();
        for (index, (_, _, ttl)) in leases.iter().enumerate() {
            by_ttl.entry(*ttl).or_default().push(index);
        }
        let mut answers: Vec<Option<Result<Held>>> = leases.iter().map(|_| None).collect();
        for (ttl, mut indices) in by_ttl {
            // In one order everywhere, so that no two batches lock rows crosswise.
            indices.sort_by(|&a, &b| leases[a].0.cmp(&leases[b].0));
            for batch in indices.chunks(RENEWAL_BATCH) {
                let held = self.renew_batch(sessions, ttl, leases, batch).await;
                for &index in batch {
                    answers[index] = Some(match &held {
                        Ok(held) => Ok(held.get(&place(&leases[index])).copied().unwrap_or(Held::No)),
                        Err(error) => Err(repeat(error)),
                    });
                }
            }
        }
        answers.into_iter().map(|answer| answer.unwrap_or(Ok(Held::No))).collect()
    }

    async fn renew_batch(
        &self,
        sessions: &Sessions,
        ttl: Duration,
        leases: &[Lease],
        batch: &[usize],
    ) -> Result<HashMap<Place, Held>> {
        let places: Vec<Place> = batch.iter().map(|&index| place(&leases[index])).collect();
        let mut params = vec![micros(ttl)];
        let extend = with_pairs(&self.extend, &places, &mut params);
        let step = Step::new("renew", &extend).reserved().repeatable();
        let reply = sessions.run(step, Params::Positional(params)).await?;
        if reply.affected == places.len() as u64 {
            return Ok(places.into_iter().map(|place| (place, Held::Yes)).collect());
        }
        self.held(sessions, "renew", &places).await
    }

    /// Which of these are held, and which were released by force; the rest is neither.
    async fn held(
        &self,
        sessions: &Sessions,
        operation: &'static str,
        places: &[Place],
    ) -> Result<HashMap<Place, Held>> {
        let mut params = Vec::new();
        let look = with_pairs(&self.look, places, &mut params);
        let step = Step::new(operation, &look).reserved().repeatable();
        let reply = sessions.run(step, Params::Positional(params)).await?;
        let mut held = HashMap::new();
        for row in &reply.rows {
            let mut columns = Columns::of(row, operation);
            let place = (columns.take()?, columns.take()?);
            let state = if columns.take::<u64>()? == 1 { Held::Yes } else { Held::Forced };
            held.insert(place, state);
        }
        Ok(held)
    }

    /// Why a statement that was to change this row did not: released by force, or simply not ours.
    ///
    /// # Errors
    /// As for [`Sessions::run`].
    pub async fn why_not(&self, sessions: &Sessions, name: &[u8], owner: OwnerId) -> Result<Held> {
        let place = (name.to_vec(), owner.as_bytes().to_vec());
        let held = self.held(sessions, "release", std::slice::from_ref(&place)).await?;
        Ok(if held.get(&place) == Some(&Held::Forced) { Held::Forced } else { Held::No })
    }
}

type Place = (Vec<u8>, Vec<u8>);

fn place((name, owner, _): &Lease) -> Place {
    (name.clone(), owner.as_bytes().to_vec())
}

/// The statement for as many pairs as there are, rounded up to a power of two by repeating the last: few different
/// texts, so that each stays prepared.
fn with_pairs(text: &str, places: &[Place], params: &mut Vec<Value>) -> String {
    let count = places.len().next_power_of_two().min(RENEWAL_BATCH.max(places.len()));
    let pairs = vec!["(?, ?)"; count].join(", ");
    for _ in 0..text.matches("{pairs}").count() {
        for (name, owner) in (0..count).filter_map(|index| places.get(index).or(places.last())) {
            params.extend([Value::Bytes(name.clone()), Value::Bytes(owner.clone())]);
        }
    }
    text.replace("{pairs}", &pairs)
}

/// A lease as a parameter. A huge interval would wrap around in the server.
pub fn micros(ttl: Duration) -> Value {
    Value::UInt(u64::try_from(ttl.min(LockOptions::MAX_TTL).as_micros()).unwrap_or(0))
}

/// The same news for one more lease of the batch.
fn repeat(error: &Error) -> Error {
    Error::new(error.kind(), error.operation()).detail(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_come_in_few_sizes() {
        let place = |n: usize| (vec![u8::try_from(n % 250).unwrap()], vec![0; 16]);
        for (leases, pairs) in [(1, 1), (2, 2), (3, 4), (100, 128), (129, 250), (250, 250)] {
            let places: Vec<_> = (0..leases).map(place).collect();
            let mut params = Vec::new();
            let text = with_pairs("a {pairs} b {pairs}", &places, &mut params);
            assert_eq!(text.matches("(?, ?)").count(), 2 * pairs, "{leases}");
            assert_eq!(params.len(), 4 * pairs);
        }
    }

    #[test]
    fn no_lease_wraps_around() {
        assert_eq!(micros(Duration::MAX), Value::UInt(86_400_000_000));
        assert_eq!(micros(Duration::from_millis(10)), Value::UInt(10_000));
    }
}
