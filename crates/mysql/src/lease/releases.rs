use std::collections::HashMap;
use std::time::Duration;

use leasehold_core::{Answers, BoxFuture, Error, ErrorKind, FencingToken, LeaseStatus, Operations, OwnerId, Result};
use mysql_async::{Params, Value};

use super::busy_rows::BusyRows;
use super::statements::LeaseStatements;
use crate::server::sessions::Sessions;
use crate::statement::batch::batch;
use crate::statement::params::named;
use crate::statement::reply::{Columns, Row};
use crate::statement::step::Step;

/// The statements that release the exclusive leases of one table.
#[derive(Clone, Debug)]
pub struct ReleaseStatements {
    /// Frees the row `:name` if `:owner` holds it.
    pub one: String,
    /// Frees the rows of a [`batch`] whose owner holds them, and stamps them: its first parameter is the stamp, in
    /// microseconds since 2000, which is in the past. Gives the clock, in the unit of epochs, to `LAST_INSERT_ID(…)`.
    pub many: String,
    /// Answers for each row of a [`batch`] its name, the stamp, the epoch, the owner and the owner that was released by force.
    /// Either owner may be NULL.
    pub outcome: String,
    /// As in [`LeaseStatements`].
    pub status: String,
}

/// The releases of the exclusive leases of one table.
#[derive(Debug)]
pub struct Releases {
    sessions: Sessions,
    statements: ReleaseStatements,
    busy: BusyRows,
}

impl Releases {
    /// The releases by these statements.
    pub fn new(sessions: &Sessions, statements: ReleaseStatements) -> Self {
        Self { sessions: sessions.clone(), statements, busy: BusyRows::default() }
    }

    async fn one(&self, name: &[u8], owner: OwnerId) -> Result<LeaseStatus> {
        let params = named([("name", Value::Bytes(name.to_vec())), ("owner", owner.as_bytes().into())]);
        if self.sessions.run(Step::new(Self::NAME, &self.statements.one), params).await?.affected > 0 {
            return Ok(LeaseStatus::Held);
        }
        let leases = LeaseStatements { renew: "", status: &self.statements.status, take_over: "" };
        leases.why_not_released(&self.sessions, name.to_vec(), owner).await
    }

    async fn many(&self, requests: &[&(Vec<u8>, OwnerId)]) -> Result<Answers<Self>> {
        // Of earlier releases of the same owners, and of those alone, the stamp differs.
        let stamp = u64::from(stamp(OwnerId::random()));
        let key = |(name, owner): &&(Vec<u8>, OwnerId)| vec![Value::Bytes(name.clone()), owner.as_bytes().into()];
        let keys: Vec<_> = requests.iter().map(key).collect();
        let (release, mut params) = batch(&self.statements.many, &keys, &[]);
        params.insert(0, Value::UInt(stamp));
        let (outcome, names) = batch(&self.statements.outcome, &keys, &[]);
        let (all, look) = (requests.len() as u64, (outcome.as_str(), Params::Positional(names)));
        let step = Step::new(Self::NAME, &release);
        let Ok(reply) = self.sessions.run_batch(step, Params::Positional(params), look, Some(all)).await? else {
            return Ok(requests.iter().map(|_| None).collect());
        };
        if reply.affected == all {
            return Ok(requests.iter().map(|_| Some(Ok(LeaseStatus::Held))).collect());
        }
        let mut found = HashMap::new();
        for row in &reply.rows {
            let (name, row) = Found::read(row)?;
            found.insert(name, row);
        }
        let known = |(name, owner): &&(Vec<u8>, OwnerId)| {
            found.get(name).and_then(|found| found.status((stamp, reply.id), *owner))
        };
        Ok(settle(requests.iter().map(known).collect(), reply.affected).into_iter().map(Some).collect())
    }
}

impl Operations for Releases {
    /// The name of the row, and the owner.
    type Request = (Vec<u8>, OwnerId);
    /// [`Held`](LeaseStatus::Held): the owner held the row until now.
    type Answer = LeaseStatus;
    const NAME: &'static str = "release";

    fn row((name, _): &Self::Request) -> Option<&[u8]> {
        Some(name)
    }

    fn alone<'a>(&'a self, (name, owner): &'a Self::Request) -> BoxFuture<'a, Result<LeaseStatus>> {
        Box::pin(async {
            let released = self.one(name, *owner).await;
            self.busy.note(name, released.is_err());
            released
        })
    }

    fn together<'a>(&'a self, requests: &'a [&'a Self::Request]) -> BoxFuture<'a, Result<Answers<Self>>> {
        Box::pin(async {
            let busy: Vec<bool> = requests.iter().map(|(name, _)| self.busy.has(name)).collect();
            let joined = requests.iter().zip(&busy).filter(|(_, busy)| !**busy);
            let joined: Vec<_> = joined.map(|(request, _)| *request).collect();
            let mut answers = if joined.is_empty() { Vec::new() } else { self.many(&joined).await? }.into_iter();
            Ok(busy.into_iter().map(|busy| if busy { None } else { answers.next().flatten() }).collect())
        })
    }
}

/// For how long a statement may wait for a row: many times longer than sessions let it.
const LONGEST_WAIT: Duration = Duration::from_secs(10);

/// A row after a batch of releases.
struct Found {
    stamp: Duration,
    epoch: u64,
    owner: Option<Vec<u8>>,
    forced: Option<Vec<u8>>,
}

impl Found {
    fn read(row: &Row) -> Result<(Vec<u8>, Self)> {
        let mut columns = Columns::of(row, Releases::NAME);
        let name = columns.get()?;
        let (stamp, epoch) = (columns.micros()?, columns.get()?);
        Ok((name, Self { stamp, epoch, owner: columns.get()?, forced: columns.get()? }))
    }

    /// What became of the release of this owner by the batch with this stamp, at this reading of the clock. `None`: somebody else has
    /// the row now, who may have come before the release or after it. The epoch of a grant is that of its statement's beginning, and
    /// that of the release, too, and either may have waited for the row.
    fn status(&self, (stamp, at): (u64, u64), owner: OwnerId) -> Option<LeaseStatus> {
        let is_owner = |found: &Option<Vec<u8>>| found.as_deref() == Some(owner.as_bytes().as_slice());
        if self.stamp == Duration::from_micros(stamp) {
            Some(LeaseStatus::Held)
        } else if is_owner(&self.forced) {
            Some(LeaseStatus::ForceReleased)
        } else {
            (is_owner(&self.owner) || self.epoch.saturating_add(FencingToken::epoch_at(LONGEST_WAIT)) < at)
                .then_some(LeaseStatus::NotHeld)
        }
    }
}

/// The answers where the statement has released so many rows. Those that are not known are told by the count if all of
/// them have the same answer; else their outcome is unknown.
fn settle(known: Vec<Option<LeaseStatus>>, released: u64) -> Vec<Result<LeaseStatus>> {
    let held = known.iter().filter(|status| **status == Some(LeaseStatus::Held)).count() as u64;
    let unknown = known.iter().filter(|status| status.is_none()).count() as u64;
    let rest = match released.saturating_sub(held) {
        0 => Some(LeaseStatus::NotHeld),
        rest if rest == unknown => Some(LeaseStatus::Held),
        _ => None,
    };
    let doubt = || Error::new(ErrorKind::Indeterminate, Releases::NAME).detail("somebody else has the key by now");
    known.into_iter().map(|status| status.or(rest).ok_or_else(doubt)).collect()
}

/// A number that no other batch of releases has, but for one in four billions.
fn stamp(random: OwnerId) -> u32 {
    let [a, b, c, d, ..] = *random.as_bytes();
    u32::from_be_bytes([a, b, c, d]).clamp(1, u32::MAX - 1)
}

#[cfg(test)]
mod tests {
    use LeaseStatus::{ForceReleased, Held, NotHeld};

    use super::*;

    #[test]
    fn a_row_tells_by_its_stamp_and_its_owners_what_became_of_a_release() {
        let (ours, other) = (OwnerId::random(), OwnerId::random());
        let bytes = |owner: OwnerId| Some(owner.as_bytes().to_vec());
        let wait = FencingToken::epoch_at(LONGEST_WAIT);
        let at = wait + 100;
        for (stamp, epoch, owner, forced, expected) in [
            (7, 99, None, None, Some(Held)),
            (7, at, bytes(other), None, Some(Held)),
            (8, at, None, bytes(ours), Some(ForceReleased)),
            (0, at, bytes(ours), None, Some(NotHeld)),
            (8, at, bytes(other), bytes(other), None),
            (0, at - 1, bytes(other), None, None),
            (0, 100, bytes(other), None, None),
            (0, 99, bytes(other), None, Some(NotHeld)),
            (0, 99, None, None, Some(NotHeld)),
            (0, 100, None, None, None),
        ] {
            let found = Found { stamp: Duration::from_micros(stamp), epoch, owner, forced };
            assert_eq!(found.status((7, at), ours), expected, "{:?}", (found.stamp, found.epoch, found.owner));
        }
    }

    #[test]
    fn a_row_that_somebody_else_has_is_told_by_the_count_or_not_at_all() {
        let settled = |known: &[Option<LeaseStatus>], released| -> Vec<_> {
            settle(known.to_vec(), released).into_iter().map(std::result::Result::ok).collect()
        };
        let known = [Some(Held), Some(ForceReleased), None, None];
        assert_eq!(settled(&known, 1), [Some(Held), Some(ForceReleased), Some(NotHeld), Some(NotHeld)]);
        assert_eq!(settled(&known, 3), [Some(Held), Some(ForceReleased), Some(Held), Some(Held)]);
        assert_eq!(settled(&known, 2), [Some(Held), Some(ForceReleased), None, None]);
    }
}
