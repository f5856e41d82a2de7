use std::cmp::Reverse;
use std::collections::HashMap;
use std::time::Duration;

use futures::future::join_all;
use leasehold_core::{BoxFuture, Error, ErrorKind, GrantRef, LeaseStatus, LockOptions, OwnerId, Result};
use mysql_async::{Params, Value};
use tokio::time::{Instant, timeout_at};

use crate::server::sessions::Sessions;
use crate::statement::batch::batch;
use crate::statement::params::named;
use crate::statement::reply::{Columns, Row};
use crate::statement::step::Step;

/// The most leases that one statement renews. Beyond 128 the server's time per lease no longer falls, and the rows of the
/// batch stay locked longer.
pub const RENEWAL_BATCH: usize = 128;

/// The statements about the leases of one table, in which every row has a name and an owner. Those for several rows are
/// texts for [`batch`].
#[derive(Clone, Copy, Debug)]
pub struct LeaseStatements<'s> {
    /// Renews the leases that are still their owners'.
    pub renew: &'s str,
    /// Answers, for each of several rows, its name, the owner that holds it, and the owner that was released by force.
    /// Either owner may be NULL.
    pub status: &'s str,
    /// Gives the row `:name` from `:owner` to `:new_owner`, if its epoch is `:epoch`, and sets its lease to `:ttl`.
    pub take_over: &'s str,
}

/// A lease to renew: the name of its row, its owner, and the length of the lease to give it.
pub type Lease = (Vec<u8>, OwnerId, Duration);

/// The key of the row of a lease: its name and its owner.
type RowKey = (Vec<u8>, Vec<u8>);

impl<'s> LeaseStatements<'s> {
    /// Renews the leases that are still their owners', up to [`RENEWAL_BATCH`] of them by one statement, and answers in
    /// the order of `leases`. Each statement ends within `within`, or [`Step::LIMIT`] if that is shorter.
    ///
    /// Where fewer rows changed than there are leases, one query finds out which are held. The count itself never
    /// decides, because it depends on the client's flags. Where another session has locked a row, each lease is renewed by
    /// a statement of its own, all at the same time and within what is left of `within`.
    pub fn renew(
        self,
        sessions: &'s Sessions,
        leases: Vec<Lease>,
        within: Duration,
    ) -> BoxFuture<'s, Vec<Result<LeaseStatus>>> {
        Box::pin(async move {
            // Each row once, with the longest lease that was asked for: a statement renews a row once, and every caller was
            // promised its lease. All clients take the rows in one order, so that no two batches lock rows crosswise.
            let mut rows: Vec<&Lease> = leases.iter().collect();
            rows.sort_by_cached_key(|lease| (row_key(lease), Reverse(lease.2)));
            rows.dedup_by(|shorter, longest| row_key(shorter) == row_key(longest));
            let mut answers: HashMap<RowKey, Result<LeaseStatus>> = HashMap::new();
            for rows in rows.chunks(RENEWAL_BATCH) {
                let renewed = self.renew_batch(sessions, rows, within).await;
                answers.extend(rows.iter().map(|lease| row_key(lease)).zip(renewed));
            }
            let answer = |lease| match answers.get(&row_key(lease)) {
                Some(Ok(status)) => Ok(*status),
                Some(Err(error)) => Err(error.retell()),
                None => Ok(LeaseStatus::NotHeld),
            };
            leases.iter().map(answer).collect()
        })
    }

    async fn renew_batch(self, sessions: &Sessions, leases: &[&Lease], within: Duration) -> Vec<Result<LeaseStatus>> {
        let limit = within.min(Step::LIMIT);
        if let [lease] = leases {
            return vec![self.renew_alone(sessions, lease, |step| step.reserved().limit(limit)).await];
        }
        let end = Instant::now() + within.min(2 * Step::LIMIT);
        match self.renew_together(sessions, leases, limit).await {
            Ok(Some(statuses)) => leases.iter().map(|lease| Ok(status_of(&statuses, lease))).collect(),
            Err(failed) => leases.iter().map(|_| Err(failed.retell())).collect(),
            // Not on the connections of renewals, which are two: two rows that stay locked would keep all others.
            Ok(None) => {
                join_all(leases.iter().map(async |lease| {
                    let renewed = timeout_at(end, self.renew_alone(sessions, lease, |step| step.limit(limit)));
                    let late =
                        |_| Error::new(ErrorKind::Indeterminate, "renew").detail("another session has locked rows");
                    renewed.await.map_err(late)?
                }))
                .await
            }
        }
    }

    /// `None`: each may be renewed by a statement of its own.
    async fn renew_together(
        self,
        sessions: &Sessions,
        leases: &[&Lease],
        limit: Duration,
    ) -> Result<Option<HashMap<RowKey, LeaseStatus>>> {
        let (renew, params) = self.renew_statement(leases);
        let keys: Vec<RowKey> = leases.iter().map(|lease| row_key(lease)).collect();
        let (status, names) = self.status_statement(&keys);
        let step = Step::new("renew", &renew).reserved().repeatable().limit(limit);
        let (params, outcome) = (Params::Positional(params), (&*status, Params::Positional(names)));
        let reply = sessions.run_batch(step, params, outcome, Some(keys.len() as u64)).await?;
        let Ok(reply) = reply else { return Ok(None) };
        if reply.affected == keys.len() as u64 {
            return Ok(Some(keys.into_iter().map(|key| (key, LeaseStatus::Held)).collect()));
        }
        read_statuses("renew", &reply.rows).map(Some)
    }

    async fn renew_alone(
        self,
        sessions: &Sessions,
        lease: &Lease,
        sent: impl Fn(Step<'_>) -> Step<'_>,
    ) -> Result<LeaseStatus> {
        let (renew, params) = self.renew_statement(&[lease]);
        let step = sent(Step::new("renew", &renew).repeatable());
        if sessions.run(step, Params::Positional(params)).await?.affected > 0 {
            return Ok(LeaseStatus::Held);
        }
        let statuses = self.statuses(sessions, "renew", &[row_key(lease)], step.limit).await?;
        Ok(status_of(&statuses, lease))
    }

    /// The statement that renews these leases, and its parameters.
    pub fn renew_statement(self, leases: &[&Lease]) -> (String, Vec<Value>) {
        let key = |(name, owner, _): &&Lease| vec![Value::Bytes(name.clone()), owner.as_bytes().into()];
        let ttls: Vec<_> = leases.iter().map(|(_, _, ttl)| micros(*ttl)).collect();
        batch(self.renew, &leases.iter().map(key).collect::<Vec<_>>(), &ttls)
    }

    /// The statement that answers who holds these rows, and its parameters.
    fn status_statement(self, keys: &[RowKey]) -> (String, Vec<Value>) {
        let key = |(name, owner): &RowKey| vec![Value::Bytes(name.clone()), Value::Bytes(owner.clone())];
        batch(self.status, &keys.iter().map(key).collect::<Vec<_>>(), &[])
    }

    /// The status of those of these rows that are held, or were released by force. A row without a status is not held.
    async fn statuses(
        self,
        sessions: &Sessions,
        operation: &'static str,
        keys: &[RowKey],
        limit: Duration,
    ) -> Result<HashMap<RowKey, LeaseStatus>> {
        let (status, params) = self.status_statement(keys);
        let step = Step::new(operation, &status).reserved().repeatable().limit(limit);
        read_statuses(operation, &sessions.run(step, Params::Positional(params)).await?.rows)
    }

    /// Gives the row of a grant to a new owner. The answer is [`LeaseStatus::Held`], too, if the new owner has it already
    /// from an earlier sending.
    ///
    /// # Errors
    /// The errors of [`Sessions::run`].
    pub fn take_over<'a>(
        self,
        sessions: &'a Sessions,
        name: Vec<u8>,
        grant: &'a GrantRef,
        new_owner: OwnerId,
        ttl: Duration,
    ) -> BoxFuture<'a, Result<LeaseStatus>>
    where
        's: 'a,
    {
        Box::pin(async move {
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
            let statuses = self.statuses(sessions, "attach", &[new.clone(), old.clone()], Step::LIMIT).await?;
            match (statuses.get(&new), statuses.get(&old)) {
                (Some(LeaseStatus::Held), _) => Ok(LeaseStatus::Held),
                (_, Some(LeaseStatus::ForceReleased)) => Ok(LeaseStatus::ForceReleased),
                _ => Ok(LeaseStatus::NotHeld),
            }
        })
    }

    /// Why a release changed no row: the lease was released by force, or is not held.
    ///
    /// # Errors
    /// The errors of [`Sessions::run`].
    pub fn why_not_released(
        self,
        sessions: &'s Sessions,
        name: Vec<u8>,
        owner: OwnerId,
    ) -> BoxFuture<'s, Result<LeaseStatus>> {
        Box::pin(async move {
            let key = (name, owner.as_bytes().to_vec());
            let statuses = self.statuses(sessions, "release", std::slice::from_ref(&key), Step::LIMIT).await?;
            let forced = statuses.get(&key) == Some(&LeaseStatus::ForceReleased);
            Ok(if forced { LeaseStatus::ForceReleased } else { LeaseStatus::NotHeld })
        })
    }
}

/// The statuses in the answer of [`LeaseStatements::status`].
fn read_statuses(operation: &'static str, rows: &[Row]) -> Result<HashMap<RowKey, LeaseStatus>> {
    let mut statuses = HashMap::new();
    for row in rows {
        let mut columns = Columns::of(row, operation);
        let name: Vec<u8> = columns.get()?;
        let (holds, forced): (Option<Vec<u8>>, Option<Vec<u8>>) = (columns.get()?, columns.get()?);
        statuses.extend(forced.map(|owner| ((name.clone(), owner), LeaseStatus::ForceReleased)));
        statuses.extend(holds.map(|owner| ((name, owner), LeaseStatus::Held)));
    }
    Ok(statuses)
}

fn status_of(statuses: &HashMap<RowKey, LeaseStatus>, lease: &Lease) -> LeaseStatus {
    statuses.get(&row_key(lease)).copied().unwrap_or(LeaseStatus::NotHeld)
}

fn row_key((name, owner, _): &Lease) -> RowKey {
    (name.clone(), owner.as_bytes().to_vec())
}

/// The length of a lease as a parameter, in microseconds, at most [`LockOptions::MAX_TTL`]: a huge interval would wrap
/// around in the server.
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
