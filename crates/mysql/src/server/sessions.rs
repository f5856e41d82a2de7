use std::time::Duration;

use leasehold_core::{BoxFuture, Clock, Error, ErrorKind, Result, jittered};
use mysql_async::prelude::Queryable;
use mysql_async::{Error as Failure, Params, Pool};
use tokio::time::{sleep, timeout};

use super::address::Address;
use super::connections::Connections;
use super::failure::{Progress, classify};
use super::pools::PoolKind;
use super::session::{Session, SessionId, catch_panic};
use crate::statement::reply::{Reply, Row};
use crate::statement::step::Step;

/// How long it may take to end a session whose statement nobody waits for any more.
const KILL: Duration = Duration::from_millis(500);

/// For how long a statement is sent again that the server undid because of another session.
const RESEND: Duration = Duration::from_secs(1);

/// Sends statements to the server of one address, on connections of its own. A clone shares the connections.
///
/// A sent statement ends within its limit. It is sent again where that is safe, and the sessions of statements that were
/// given up are ended in the server.
#[derive(Clone, Debug)]
pub struct Sessions {
    pub(crate) connections: Connections,
    clock: Clock,
}

/// The failure of one sending.
struct FailedSend {
    error: Error,
    recovery: Recovery,
}

/// What may be done about a failed sending.
enum Recovery {
    /// Report the error.
    GiveUp,
    /// Send the statement again: the server undid it because of another session.
    Resend,
    /// Send the statement on a new connection: this server takes no writes, and the address may lead to another by now.
    Reconnect,
    /// The connection broke. End this session in the server first: then nothing of the statement is applied any more.
    KillSession(SessionId),
}

impl Sessions {
    /// Connections to the server of a `mysql://` URL; see [`ConnectionSettings::url`](crate::ConnectionSettings::url).
    /// Nothing is sent.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidOptions`] for a URL that cannot be used.
    pub fn at(url: &str) -> Result<Self> {
        Ok(Self::new(&Address::parse(url)?))
    }

    /// Connections to this address. Nothing is sent.
    pub(crate) fn new(address: &Address) -> Self {
        Self::on(Connections::new(address.opts.clone(), address.shown.clone()))
    }

    /// Connections of our own to the server of the caller's pool, with its options. The pool is asked for one connection,
    /// once, and gets it back as it was.
    pub(crate) fn like(pool: &Pool) -> BoxFuture<'_, Result<Self>> {
        Box::pin(async move { Connections::like(pool).await.map(Self::on) })
    }

    fn on(connections: Connections) -> Self {
        Self { connections, clock: Clock::system() }
    }

    /// Sends one statement. If the server undid it because of another session, it is sent again for up to a second.
    ///
    /// # Errors
    /// [`ErrorKind::Unavailable`] if the statement was definitely not applied, [`ErrorKind::Indeterminate`] if the answer
    /// is missing, [`ErrorKind::Backend`] if the server refused it for good, [`ErrorKind::Closed`] after
    /// [`close`](Self::close).
    ///
    /// # Cancel safety
    /// A statement that is under way when the future is dropped may still be applied.
    pub fn run<'a>(&'a self, step: Step<'a>, params: Params) -> BoxFuture<'a, Result<Reply>> {
        Box::pin(async move {
            let give_up = self.clock.now().plus(RESEND);
            let mut pause = Duration::from_millis(2);
            let (mut repeats, mut reconnections) = (u32::from(step.repeatable), 1);
            let mut doubtful = false;
            loop {
                let FailedSend { error, recovery } = match self.send_once(step, params.clone(), None, None).await {
                    Ok(reply) => return Ok(Reply { repeated: doubtful, ..reply }),
                    Err(failed) => failed,
                };
                let again = match recovery {
                    Recovery::GiveUp => false,
                    Recovery::Resend => self.clock.now() < give_up,
                    Recovery::Reconnect => std::mem::take(&mut reconnections) > 0,
                    Recovery::KillSession(broken) => {
                        doubtful = true;
                        // While the first sending may still be applied, the answer to a second one says nothing of it.
                        std::mem::take(&mut repeats) > 0 && self.kill(&broken).await
                    }
                };
                if !again {
                    let broke = error.kind() == ErrorKind::Indeterminate;
                    return Err(if doubtful && !broke { in_doubt(step.operation, &error) } else { error });
                }
                sleep(jittered(pause, 0.5..=1.0)).await;
                pause = (pause * 2).min(Duration::from_millis(50));
            }
        })
    }

    async fn overdue(&self, step: Step<'_>, session: Session) -> FailedSend {
        let id = session.id.clone();
        // To drop the session is not enough: the server would go on with the statement, and might commit much later.
        drop(session);
        self.kill(&id).await;
        let error = Error::new(ErrorKind::Indeterminate, step.operation);
        FailedSend { error: error.detail(format!("no answer within {:?}", step.limit)), recovery: Recovery::GiveUp }
    }

    /// Sends a statement about many rows, and then, in the same session, a query that tells what became of each. The query
    /// is left out if the statement has changed `all` rows. The answer has the rows of the query, and how many rows the
    /// statement has changed.
    ///
    /// [`Apart`]: each row may be asked for by a statement of its own. The server undid the statement or refused it before it
    /// began, or the step is repeatable and what was carried out of it is over.
    ///
    /// # Errors
    /// The errors of [`run`](Self::run).
    ///
    /// # Cancel safety
    /// A statement that is under way when the future is dropped may still be applied.
    pub fn run_batch<'a>(
        &'a self,
        step: Step<'a>,
        params: Params,
        outcome: (&'a str, Params),
        all: Option<u64>,
    ) -> BoxFuture<'a, Result<std::result::Result<Reply, Apart>>> {
        Box::pin(async move {
            let FailedSend { error, recovery } = match self.send_once(step, params, Some(outcome), all).await {
                Ok(reply) => return Ok(Ok(reply)),
                Err(failed) => failed,
            };
            match recovery {
                Recovery::Resend if error.kind() == ErrorKind::Indeterminate => Ok(Err(Apart::InDoubt)),
                Recovery::Resend | Recovery::Reconnect => Ok(Err(Apart::Untouched)),
                Recovery::KillSession(broken) if step.repeatable && self.kill(&broken).await => Ok(Err(Apart::InDoubt)),
                Recovery::KillSession(_) | Recovery::GiveUp => Err(error),
            }
        })
    }

    /// Sends the statement, and then the query that tells what became of each row, if there is one. The query is left out if
    /// the statement has changed `all` rows.
    async fn send_once(
        &self,
        step: Step<'_>,
        params: Params,
        outcome: Option<(&str, Params)>,
        all: Option<u64>,
    ) -> Result<Reply, FailedSend> {
        let pool = if step.reserved { PoolKind::Reserved } else { PoolKind::Common };
        let checked_out = self.connections.check_out(pool, step.operation).await;
        let mut session = checked_out.map_err(|error| FailedSend { error, recovery: Recovery::GiveUp })?;
        let mut affected = None;
        let asking = async {
            let rows = session.ask(step.statement, params).await?;
            let changed = session.conn.affected_rows();
            affected = Some((changed, session.conn.last_insert_id().unwrap_or(0)));
            match outcome {
                Some(_) if all == Some(changed) => Ok(Vec::new()),
                Some((outcome, names)) => session.ask(outcome, names).await,
                None => Ok(rows),
            }
        };
        let answer = timeout(step.limit, asking).await;
        match (answer, affected) {
            (Ok(Ok(rows)), Some((affected, id))) => {
                Ok(Reply { rows: rows.into_iter().map(Row::from).collect(), affected, id, repeated: false })
            }
            (Ok(Err(failure)), None) => Err(self.failed(step, &session.id, &failure)),
            // Applied, and nobody knows to which of the rows.
            (_, Some(_)) => {
                let error =
                    Error::new(ErrorKind::Indeterminate, step.operation).detail("nobody told what became of it");
                Err(FailedSend { error, recovery: if step.repeatable { Recovery::Resend } else { Recovery::GiveUp } })
            }
            (_, None) => Err(self.overdue(step, session).await),
        }
    }

    fn failed(&self, step: Step<'_>, session: &SessionId, failure: &Failure) -> FailedSend {
        let class = classify(failure, Progress::Sent);
        let error = class.error(step.operation, "", failure, Some(self.connections.secrets()));
        let recovery = if class.takes_no_writes {
            self.connections.leave(session.generation);
            Recovery::Reconnect
        } else if class.undone {
            Recovery::Resend
        } else if class.kind == ErrorKind::Indeterminate {
            Recovery::KillSession(session.clone())
        } else {
            Recovery::GiveUp
        };
        FailedSend { error, recovery }
    }

    /// Ends a session of ours in its server, so that its statement is done or undone soon, and not in a minute. Answers
    /// whether the session has ended. If that cannot be found out, the lease bounds what the statement may still do.
    async fn kill(&self, broken: &SessionId) -> bool {
        timeout(KILL, self.kill_and_wait(broken)).await.unwrap_or(false)
    }

    async fn kill_and_wait(&self, broken: &SessionId) -> bool {
        let Ok(mut session) = self.connections.check_out(PoolKind::Reserved, "end a session").await else {
            return false;
        };
        if session.id.generation != broken.generation {
            // In another server, and in the same one after a restart, the id may be that of somebody else's session.
            return session.id.server.is_restart_of(&broken.server);
        }
        loop {
            match catch_panic(session.conn.query_drop(format!("KILL CONNECTION {}", broken.connection))).await {
                Some(Ok(())) => sleep(Duration::from_millis(2)).await,
                Some(Err(Failure::Server(refusal))) => return refusal.code == NO_SUCH_SESSION,
                _ => return false,
            }
        }
    }

    /// Closes the connections within a second, with those of the [`AdvisoryQueue`](crate::AdvisoryQueue). Statements that
    /// wait for a connection, and statements that are sent later, fail with [`ErrorKind::Closed`].
    pub fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.connections.close())
    }
}

/// A batch whose rows are asked for by statements of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Apart {
    /// It changed nothing.
    Untouched,
    /// Nobody knows what it changed, and it is over.
    InDoubt,
}

/// The server's error code for a session to be ended that does not exist any more.
const NO_SUCH_SESSION: u16 = 1094;

/// The error where an earlier sending may have been applied, whatever became of the last one.
pub(crate) fn in_doubt(operation: &'static str, last: &Error) -> Error {
    Error::new(ErrorKind::Indeterminate, operation).detail(format!("the connection broke, and then: {last}"))
}
