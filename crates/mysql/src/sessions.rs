use std::fmt;
use std::time::Duration;

use leasehold_core::{Clock, Error, ErrorKind, Result};
use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Error as Failure, Params, Pool, Row, Value};
use rand::Rng;
use tokio::time::{sleep, timeout};

use crate::refusal::{Stage, classify};
use crate::{Address, Tuning};

/// What every session is told first.
///
/// A server's default of `autocommit = 0` would lose every lock in silence. A mode that is not strict would cut names
/// and so merge them; `SIMULTANEOUS_ASSIGNMENT` and the modes of other databases would change what the statements
/// mean. No statement may wait longer for a row or a table than its client waits for the answer. Isolation level and
/// time zone stay as they are: the statements are right under all of them, and READ COMMITTED cannot be logged with
/// `binlog_format = STATEMENT`.
pub(crate) const SETUP: &str = "SET SESSION autocommit = 1, sql_mode = 'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION', \
                                innodb_lock_wait_timeout = 1, lock_wait_timeout = 1";

/// How long a statement may take to get a connection.
const CHECKOUT: Duration = Duration::from_secs(1);
/// How long a session may take to end what nobody waits for any more.
const CLEAN_UP: Duration = Duration::from_millis(500);
/// How long a statement that the server undid because of another session is sent again.
const INSIST: Duration = Duration::from_secs(1);

/// The connections to one server. Cloning gives another handle on the same ones.
#[derive(Clone)]
pub struct Sessions {
    pool: Pool,
    reserved: Option<Pool>,
    /// Somebody else configured the pool, so its sessions are told [`SETUP`] at each checkout.
    foreign: bool,
    clock: Clock,
    shown: String,
}

/// Which connections a statement may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lane {
    /// The pool.
    Common,
    /// Those kept apart for renewals, where there are any.
    Reserved,
}

/// One statement on its way.
#[derive(Clone, Copy, Debug)]
#[must_use]
pub struct Step<'s> {
    operation: &'static str,
    statement: &'s str,
    lane: Lane,
    repeatable: bool,
    limit: Duration,
}

/// What the server answered.
#[derive(Debug)]
pub struct Reply {
    /// The rows of a query.
    pub rows: Vec<Row>,
    /// How many rows were changed, or, on a caller's pool with `client_found_rows`, matched.
    pub affected: u64,
    /// What `LAST_INSERT_ID(…)` was set to; zero if it was not.
    pub id: u64,
}

impl<'s> Step<'s> {
    /// A statement in `operation`, on the common lane, ended after 2.5 s: longer than the server waits for a row.
    pub fn new(operation: &'static str, statement: &'s str) -> Self {
        let limit = Duration::from_millis(2500);
        Self { operation, statement, lane: Lane::Common, repeatable: false, limit }
    }

    /// On the reserved lane.
    pub fn reserved(self) -> Self {
        Self { lane: Lane::Reserved, ..self }
    }

    /// Doing it twice is doing it once, so it is sent once more when the connection breaks.
    pub fn repeatable(self) -> Self {
        Self { repeatable: true, ..self }
    }

    /// Ended after this.
    pub fn limit(self, limit: Duration) -> Self {
        Self { limit, ..self }
    }
}

impl Sessions {
    /// Pools of our own for this address. Nothing is sent yet.
    pub fn new(address: &Address) -> Self {
        Self {
            pool: Pool::new(address.opts(Tuning::Ordinary)),
            reserved: Some(Pool::new(address.opts(Tuning::Reserved))),
            foreign: false,
            clock: Clock::system(),
            shown: address.to_string(),
        }
    }

    /// A pool of the caller's. Each checkout costs one more statement, because its sessions may be in any state.
    pub fn from_pool(pool: Pool) -> Self {
        Self { pool, reserved: None, foreign: true, clock: Clock::system(), shown: "a pool of the caller's".into() }
    }

    /// Sends one statement, again for up to a second if the server undid it because of another session.
    ///
    /// # Errors
    /// [`ErrorKind::Unavailable`] if it was definitely not applied, [`ErrorKind::Indeterminate`] if the answer is
    /// missing, [`ErrorKind::Backend`] if the server refused for good.
    pub async fn run(&self, step: Step<'_>, params: impl Into<Params>) -> Result<Reply> {
        let params = params.into();
        let give_up = self.clock.now().plus(INSIST);
        let mut pause = Duration::from_millis(2);
        let mut repeats = u32::from(step.repeatable);
        let mut doubtful = false;
        loop {
            let (error, again) = match self.once(step, params.clone()).await {
                Ok(reply) => return Ok(reply),
                Err(failed) => failed,
            };
            let broke = error.kind() == ErrorKind::Indeterminate;
            doubtful |= broke;
            let once_more = broke && repeats > 0;
            if !(again || once_more) || self.clock.now() >= give_up {
                return Err(if doubtful && !broke { in_doubt(step.operation, &error) } else { error });
            }
            repeats -= u32::from(once_more);
            let jitter = rand::rng().random_range(0.5..=1.0);
            sleep(pause.mul_f64(jitter)).await;
            pause = (pause * 2).min(Duration::from_millis(50));
        }
    }

    async fn once(&self, step: Step<'_>, params: Params) -> Result<Reply, (Error, bool)> {
        let at = |detail: String| format!("{}: {detail}", self.shown);
        let failed = |failure: Failure, stage| {
            let verdict = classify(&failure, stage);
            let said = verdict.detail(&failure);
            let error = Error::new(verdict.kind, step.operation);
            let error = error.detail(if stage == Stage::Connecting { at(said) } else { said });
            (if verdict.advice.is_some() { error.caused_by(failure) } else { error }, verdict.again)
        };
        let Ok(session) = timeout(CHECKOUT, self.check_out(step.lane)).await else {
            let error = Error::new(ErrorKind::Unavailable, step.operation);
            return Err((error.detail(at("no connection within 1 s".into())), false));
        };
        let mut session = session.map_err(|failure| failed(failure, Stage::Connecting))?;
        let id = session.id();
        let Ok(answer) = timeout(step.limit, session.exec::<Row, _, _>(step.statement, params)).await else {
            // Dropping it does not un-send it: the server would go on, and might commit much later.
            drop(session);
            self.end(id).await;
            let error = Error::new(ErrorKind::Indeterminate, step.operation);
            return Err((error.detail(format!("no answer within {:?}", step.limit)), false));
        };
        let rows = answer.map_err(|failure| failed(failure, Stage::Sent))?;
        Ok(Reply { rows, affected: session.affected_rows(), id: session.last_insert_id().unwrap_or(0) })
    }

    async fn check_out(&self, lane: Lane) -> Result<Conn, Failure> {
        let pool = match (lane, &self.reserved) {
            (Lane::Reserved, Some(reserved)) => reserved,
            _ => &self.pool,
        };
        let mut session = pool.get_conn().await?;
        if self.foreign {
            // A reset on return would cost a round trip and every prepared statement.
            session.reset_connection(false);
            session.query_drop(SETUP).await?;
        }
        Ok(session)
    }

    /// Ends a session of ours in the server, so that what it was doing is done or undone soon, and not in a minute.
    async fn end(&self, id: u32) {
        let end = async {
            let mut session = self.check_out(Lane::Reserved).await?;
            session.query_drop(format!("KILL CONNECTION {id}")).await
        };
        // If it cannot be done either, the lease bounds what the statement may still do.
        drop(timeout(CLEAN_UP, end).await);
    }

    /// Closes the connections of our own pools; a caller's pool stays as it is.
    pub async fn close(&self) {
        if self.foreign {
            return;
        }
        for pool in [Some(&self.pool), self.reserved.as_ref()].into_iter().flatten() {
            // It waits for statements under way; those end by themselves, and nobody needs to wait longer.
            drop(timeout(CHECKOUT, pool.clone().disconnect()).await);
        }
    }
}

/// An earlier sending may have been applied, whatever became of this one.
fn in_doubt(operation: &'static str, last: &Error) -> Error {
    Error::new(ErrorKind::Indeterminate, operation).detail(format!("the connection broke, and then: {last}"))
}

/// Parameters by name.
pub fn named<const N: usize>(params: [(&str, Value); N]) -> Params {
    Params::Named(params.into_iter().map(|(name, value)| (name.as_bytes().to_vec(), value)).collect())
}

impl fmt::Debug for Sessions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Sessions").field(&self.shown).finish()
    }
}
