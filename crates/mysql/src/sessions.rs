use std::time::Duration;

use leasehold_core::{Clock, Error, ErrorKind, Result};
use mysql_async::prelude::Queryable;
use mysql_async::{Error as Failure, Params, Pool, Row, Value};
use rand::Rng;
use tokio::time::{sleep, timeout};

use crate::Address;
use crate::connections::{Connections, Fate, Lane, Origin, contained};
use crate::refusal::{Stage, classify};

/// What every session is told first.
///
/// A server's default of `autocommit = 0` would lose every lock in silence. A mode that is not strict would cut names
/// and so merge them; `SIMULTANEOUS_ASSIGNMENT` and the modes of other databases would change what the statements
/// mean. No statement may wait longer for a row or a table than its client waits for the answer. Isolation level and
/// time zone stay as they are: the statements are right under all of them, and READ COMMITTED cannot be logged with
/// `binlog_format = STATEMENT`.
pub(crate) const SETUP: &str = "SET SESSION autocommit = 1, sql_mode = 'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION', \
                                innodb_lock_wait_timeout = 1, lock_wait_timeout = 1";

/// How long a session may take to end what nobody waits for any more.
const CLEAN_UP: Duration = Duration::from_millis(500);
/// How long a statement that the server undid because of another session is sent again.
const INSIST: Duration = Duration::from_secs(1);

/// What is sent to one server. Cloning gives another handle on the same connections.
#[derive(Clone, Debug)]
pub struct Sessions {
    connections: Connections,
    clock: Clock,
}

/// How a sending failed.
struct Failed {
    error: Error,
    next: Next,
}

/// What may be done about it.
enum Next {
    /// Nothing here.
    GiveUp,
    /// The server undid it because of another session.
    SendAgain,
    /// This server takes no writes; the one that does may have the address by now.
    LookElsewhere,
    /// The connection broke. Once the server has ended this session, nothing of it is applied any more.
    Settle(Origin),
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
    /// How many rows were changed, or, with `client_found_rows`, matched.
    pub affected: u64,
    /// What `LAST_INSERT_ID(…)` was set to; zero if it was not.
    pub id: u64,
    /// It is the answer to a statement that was sent again, and the first may have been carried out.
    pub repeated: bool,
}

impl<'s> Step<'s> {
    /// How long an answer is waited for: longer than the server waits for a row.
    pub const LIMIT: Duration = Duration::from_millis(2500);

    /// A statement in `operation`, on the common lane, ended after [`LIMIT`](Self::LIMIT).
    pub fn new(operation: &'static str, statement: &'s str) -> Self {
        Self { operation, statement, lane: Lane::Common, repeatable: false, limit: Self::LIMIT }
    }

    /// On the reserved lane.
    pub fn reserved(self) -> Self {
        Self { lane: Lane::Reserved, ..self }
    }

    /// Doing it twice is doing it once, so it is sent once more when the connection breaks and the server has ended the
    /// session that it was sent in.
    pub fn repeatable(self) -> Self {
        Self { repeatable: true, ..self }
    }

    /// Ended after this.
    pub fn limit(self, limit: Duration) -> Self {
        Self { limit, ..self }
    }
}

impl Sessions {
    /// Connections of our own to this address. Nothing is sent yet.
    pub fn new(address: &Address) -> Self {
        Self::on(Connections::new(address.opts().clone(), address.to_string()))
    }

    /// Connections of our own to the server of the caller's pool, by its options. The pool is asked for one of its
    /// connections, once, and gets it back as it was.
    ///
    /// # Errors
    /// Those of connecting, and [`ErrorKind::InvalidOptions`] if the driver has left the address for a local socket.
    pub async fn like(pool: &Pool) -> Result<Self> {
        Connections::like(pool).await.map(Self::on)
    }

    fn on(connections: Connections) -> Self {
        Self { connections, clock: Clock::system() }
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
        let (mut repeats, mut looks) = (u32::from(step.repeatable), 1);
        let mut doubtful = false;
        loop {
            let Failed { error, next } = match self.once(step, params.clone()).await {
                Ok(reply) => return Ok(Reply { repeated: doubtful, ..reply }),
                Err(failed) => failed,
            };
            let again = match next {
                Next::GiveUp => false,
                Next::SendAgain => self.clock.now() < give_up,
                Next::LookElsewhere => std::mem::take(&mut looks) > 0,
                Next::Settle(broken) => {
                    doubtful = true;
                    // While the first may still be applied, the answer to a second says nothing about it.
                    std::mem::take(&mut repeats) > 0 && self.is_over(&broken).await
                }
            };
            if !again {
                let broke = error.kind() == ErrorKind::Indeterminate;
                return Err(if doubtful && !broke { in_doubt(step.operation, &error) } else { error });
            }
            let jitter = rand::rng().random_range(0.5..=1.0);
            sleep(pause.mul_f64(jitter)).await;
            pause = (pause * 2).min(Duration::from_millis(50));
        }
    }

    async fn once(&self, step: Step<'_>, params: Params) -> Result<Reply, Failed> {
        let checked_out = self.connections.check_out(step.lane, step.operation).await;
        let mut session = checked_out.map_err(|error| Failed { error, next: Next::GiveUp })?;
        let Ok(answer) = timeout(step.limit, session.ask(step.statement, params)).await else {
            let origin = session.origin.clone();
            // Dropping it does not un-send it: the server would go on, and might commit much later.
            drop(session);
            self.is_over(&origin).await;
            let error = Error::new(ErrorKind::Indeterminate, step.operation);
            return Err(Failed {
                error: error.detail(format!("no answer within {:?}", step.limit)),
                next: Next::GiveUp,
            });
        };
        match answer {
            Ok(rows) => {
                let (affected, id) = (session.conn.affected_rows(), session.conn.last_insert_id().unwrap_or(0));
                Ok(Reply { rows, affected, id, repeated: false })
            }
            Err(failure) => Err(self.failed(step, &session.origin, &failure)),
        }
    }

    fn failed(&self, step: Step<'_>, origin: &Origin, failure: &Failure) -> Failed {
        let verdict = classify(failure, Stage::Sent);
        let error = verdict.error(step.operation, "", failure, Some(self.connections.secrets()));
        let next = if verdict.elsewhere {
            self.connections.leave_server_of(origin);
            Next::LookElsewhere
        } else if verdict.again {
            Next::SendAgain
        } else if verdict.kind == ErrorKind::Indeterminate {
            Next::Settle(origin.clone())
        } else {
            Next::GiveUp
        };
        Failed { error, next }
    }

    /// Ends a session of ours in its server, so that what it was doing is done or undone soon, and not in a minute.
    /// Answers whether it is over; if that cannot be found out, the lease bounds what it may still do.
    async fn is_over(&self, broken: &Origin) -> bool {
        timeout(CLEAN_UP, self.end(broken)).await.unwrap_or(false)
    }

    async fn end(&self, broken: &Origin) -> bool {
        let Ok(mut session) = self.connections.check_out(Lane::Reserved, "end a session").await else { return false };
        // Its id may be somebody else's in another server, and in another life of the same.
        match session.fate_of(broken) {
            Fate::Here => {}
            fate => return fate == Fate::Over,
        }
        loop {
            match contained(session.conn.query_drop(format!("KILL CONNECTION {}", broken.id))).await {
                Some(Ok(())) => sleep(Duration::from_millis(2)).await,
                Some(Err(Failure::Server(refusal))) => return refusal.code == NO_SUCH_SESSION,
                _ => return false,
            }
        }
    }

    /// Closes the connections, those of the [`Doorbell`](crate::Doorbell) too, within a second. Whoever waits for one
    /// is told [`ErrorKind::Closed`], and so is who asks later.
    pub async fn close(&self) {
        self.connections.close().await;
    }

    pub(crate) fn connections(&self) -> &Connections {
        &self.connections
    }
}

/// The server's answer when a session that is to be ended has ended.
const NO_SUCH_SESSION: u16 = 1094;

/// An earlier sending may have been applied, whatever became of this one.
fn in_doubt(operation: &'static str, last: &Error) -> Error {
    Error::new(ErrorKind::Indeterminate, operation).detail(format!("the connection broke, and then: {last}"))
}

/// Parameters by name.
pub fn named<const N: usize>(params: [(&str, Value); N]) -> Params {
    Params::Named(params.into_iter().map(|(name, value)| (name.as_bytes().to_vec(), value)).collect())
}
