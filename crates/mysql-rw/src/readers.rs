use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::ops::Deref;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use leasehold_core::{Attempt, Claim, Clock, Error, ErrorKind, GrantRef, LeaseStatus, LockKey, Result};
use leasehold_mysql::{Step, Value, micros, named};
use tokio::sync::oneshot::{self, error::TryRecvError};

use crate::MysqlRwBackend;
use crate::backend::{answer, text};

impl MysqlRwBackend {
    /// Takes a number, then adds the reader's row, unless there is a writer.
    ///
    /// In this order, because numbers have to grow: whoever asks after this reader was admitted draws later.
    pub(crate) async fn claim_to_read(&self, claim: &Claim) -> Result<Attempt> {
        // A writer that came and went since the number was drawn has made it too small; a fresh one costs less than
        // another round of waiting.
        for _ in 0..2 {
            let attempt = match self.draw(claim).await? {
                Attempt::Granted { epoch: Some(epoch) } => self.admit("acquire", claim, Value::NULL, epoch).await?,
                busy => return Ok(busy),
            };
            if attempt != (Attempt::Busy { retry_in: None }) {
                return Ok(attempt);
            }
        }
        Ok(Attempt::Busy { retry_in: None })
    }

    /// Adds the reader's row, for who is this writer, or NULL, until then.
    pub(crate) async fn admit(
        &self,
        operation: &'static str,
        claim: &Claim,
        writer: Value,
        epoch: u64,
    ) -> Result<Attempt> {
        let params = named([
            ("name", self.name(&claim.key)),
            ("writer", writer),
            ("owner", claim.owner.as_bytes().into()),
            ("epoch", Value::UInt(epoch)),
            ("ttl", micros(claim.ttl)),
            ("label", text(claim.label.as_ref())),
            ("reason", text(claim.reason.as_ref())),
        ]);
        let reply = self.sessions.run(Step::new(operation, &self.statements.admit).repeatable(), params).await?;
        match reply.id {
            // A writer may have come since the row was added by the first sending.
            0 if reply.repeated => Err(Error::new(ErrorKind::Indeterminate, operation).detail("it was sent twice")),
            0 => Ok(Attempt::Busy { retry_in: None }),
            epoch => Ok(Attempt::Granted { epoch: Some(epoch) }),
        }
    }

    /// A number of one's own, or how long a writer may still be in the way.
    ///
    /// Drawing changes the key's row, and only one session at a time can do that. So those readers of this process who
    /// ask at the same time draw together: one of them draws for all who had asked when its statement left.
    async fn draw(&self, claim: &Claim) -> Result<Attempt> {
        loop {
            let lane = self.drawing.enter(&claim.key);
            let (sender, mut number) = oneshot::channel();
            let wish = Wish { waits: claim.waits, number: sender };
            lane.wanted.lock().unwrap_or_else(PoisonError::into_inner).push(wish);
            let turn = tokio::select! {
                biased;
                drawn = &mut number => match drawn {
                    Ok(drawn) => return drawn,
                    // Whoever drew for us went away before it had an answer.
                    Err(_) => continue,
                },
                turn = lane.turn.lock() => turn,
            };
            match number.try_recv() {
                Ok(drawn) => return drawn,
                Err(TryRecvError::Closed) => continue,
                Err(TryRecvError::Empty) => {}
            }
            let wanted = std::mem::take(&mut *lane.wanted.lock().unwrap_or_else(PoisonError::into_inner));
            let drawn = self.draw_many(&claim.key, &wanted).await;
            for (wish, drawn) in wanted.into_iter().zip(shared_out(&drawn)) {
                // Whoever does not wait for it any more leaves a gap, and gaps are harmless.
                drop(wish.number.send(drawn));
            }
            // Only now, so that whoever has the turn and no number finds its wish still there.
            drop(turn);
            if let Ok(drawn) = number.try_recv() {
                return drawn;
            }
        }
    }

    async fn draw_many(&self, key: &LockKey, wishes: &[Wish]) -> Result<(Attempt, u64)> {
        let (count, waits) = (wishes.len() as u64, wishes.iter().any(|wish| wish.waits));
        let away = micros(self.drawing.away());
        let params = || {
            named([
                ("name", self.name(key)),
                ("count", Value::UInt(count)),
                ("waits", Value::from(waits)),
                ("away", away.clone()),
            ])
        };
        let asked_at = Clock::system().now();
        let reply = self.run_on_row(&self.statements.draw, key, params).await?;
        self.drawing.came_back_after(Clock::system().now().since(asked_at));
        Ok((answer(&reply)?, count))
    }

    pub(crate) async fn let_go_reader(&self, grant: &GrantRef) -> Result<LeaseStatus> {
        let params = || named([("name", self.name(&grant.key)), ("owner", grant.owner.as_bytes().into())]);
        let reply = self.sessions.run(Step::new("release", &self.statements.let_go_reader), params()).await?;
        if reply.affected > 0 {
            return Ok(LeaseStatus::Held);
        }
        let name = self.namespace.name_of(&grant.key);
        let held = self.statements.readers().why_not(&self.sessions, &name, grant.owner).await?;
        self.sessions.run(Step::new("release", &self.statements.forget_reader).repeatable(), params()).await?;
        Ok(held)
    }
}

/// The answers for those who drew together, of which the newest number is known.
fn shared_out(drawn: &Result<(Attempt, u64)>) -> impl Iterator<Item = Result<Attempt>> {
    (0..).map(move |index| match drawn {
        Ok((Attempt::Granted { epoch: Some(newest) }, count)) => {
            Ok(Attempt::Granted { epoch: Some(newest - (count - 1) + index) })
        }
        Ok((busy, _)) => Ok(*busy),
        Err(error) => Err(error.retell()),
    })
}

/// Who in this process wants a number, by key, and how far away the server is.
#[derive(Debug, Default)]
pub(crate) struct Drawing {
    lanes: Mutex<HashMap<LockKey, Visited>>,
    /// In microseconds.
    round_trip: AtomicU64,
}

/// A turn is not kept for those who are further away: it bars all writers, and whoever it is kept for may be dead.
const FARTHEST: Duration = Duration::from_millis(500);

#[derive(Debug, Default)]
struct Visited {
    lane: Arc<Lane>,
    visitors: usize,
}

#[derive(Debug, Default)]
struct Lane {
    turn: tokio::sync::Mutex<()>,
    wanted: Mutex<Vec<Wish>>,
}

/// Somebody in a lane. The last to leave takes the lane away, whichever way it leaves.
#[derive(Debug)]
struct Visit<'d> {
    drawing: &'d Drawing,
    key: LockKey,
    lane: Arc<Lane>,
}

#[derive(Debug)]
struct Wish {
    waits: bool,
    number: oneshot::Sender<Result<Attempt>>,
}

impl Drawing {
    fn enter(&self, key: &LockKey) -> Visit<'_> {
        let mut lanes = self.lanes();
        let visited = lanes.entry(key.clone()).or_default();
        visited.visitors += 1;
        Visit { drawing: self, key: key.clone(), lane: Arc::clone(&visited.lane) }
    }

    fn lanes(&self) -> MutexGuard<'_, HashMap<LockKey, Visited>> {
        self.lanes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How long the next round trip may take.
    fn away(&self) -> Duration {
        Duration::from_micros(self.round_trip.load(Ordering::Relaxed)).min(FARTHEST)
    }

    /// A long one counts for a while: those that follow may be as long.
    fn came_back_after(&self, round_trip: Duration) {
        let took = u64::try_from(round_trip.min(FARTHEST).as_micros()).unwrap_or(0);
        self.round_trip.store(took.max(self.round_trip.load(Ordering::Relaxed) / 2), Ordering::Relaxed);
    }
}

impl Deref for Visit<'_> {
    type Target = Lane;
    fn deref(&self) -> &Lane {
        &self.lane
    }
}

impl Drop for Visit<'_> {
    fn drop(&mut self) {
        if let Entry::Occupied(mut visited) = self.drawing.lanes().entry(self.key.clone()) {
            visited.get_mut().visitors -= 1;
            if visited.get().visitors == 0 {
                visited.remove();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use leasehold_core::{Error, ErrorKind};

    use super::*;

    #[test]
    fn those_who_draw_together_get_a_number_each() {
        let drawn = Ok((Attempt::Granted { epoch: Some(107) }, 3));
        let numbers: Vec<_> = shared_out(&drawn).take(3).map(Result::unwrap).collect();
        assert_eq!(numbers, [105, 106, 107].map(|epoch| Attempt::Granted { epoch: Some(epoch) }));
        let failed = Err(Error::new(ErrorKind::Unavailable, "acquire"));
        assert!(shared_out(&failed).take(2).all(|answer| answer.is_err_and(|error| error.is_transient())));
        let refused =
            Err(Error::new(ErrorKind::Backend, "acquire").detail("a right is missing").caused_by("INSERT denied"));
        let told = shared_out(&refused).next().unwrap().unwrap_err().to_string();
        assert_eq!(told, "acquire: refused by the store: INSERT denied");
    }
}
