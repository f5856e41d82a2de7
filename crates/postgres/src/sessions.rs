use std::fmt;
use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use leasehold_core::{BoxFuture, Clock, Error, ErrorKind, Home, Result, jittered};
use tokio::runtime::Handle;
use tokio::sync::{Semaphore, watch};
use tokio::task::AbortHandle;
use tokio::time::{sleep, timeout};
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{AsyncMessage, Client, Config, Row};

use crate::address::Address;
use crate::failure::{Remedy, classify};
use crate::reply::odd;

/// Sends statements to the server of one address, on connections of its own. A clone shares them.
///
/// No statement needs anything that an earlier one left in its session, so that each may go to another connection of the
/// server: statements have no names, and each is a transaction.
#[derive(Clone)]
pub(crate) struct Sessions(Arc<Shared>);

struct Shared {
    address: Address,
    clock: Clock,
    home: Option<Home>,
    idle: Mutex<Vec<Session>>,
    /// Of all statements, and of renewals.
    permits: [Semaphore; 2],
    closed: watch::Sender<bool>,
}

/// One connection. Dropping it closes it.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) client: Client,
    driver: AbortHandle,
}

/// A statement, and how it is to be sent.
#[derive(Clone, Copy)]
pub(crate) struct Step {
    /// The operation that errors name.
    pub(crate) operation: &'static str,
    /// Its text, with `{schema}` for the schema.
    pub(crate) statement: &'static str,
    /// Whether it has a connection of its own beside the pool, as renewals do.
    pub(crate) reserved: bool,
    /// How long the answer is waited for. Its outcome is unknown afterwards.
    pub(crate) limit: Duration,
}

/// A parameter of a statement, with its type: the server is not asked for it.
pub(crate) type Param<'p> = (&'p (dyn ToSql + Sync), Type);

/// How long an answer is waited for. It is longer than the server waits for a row.
pub(crate) const LIMIT: Duration = Duration::from_millis(2_500);

/// How long a statement may wait for a connection to become free.
const QUEUE: Duration = Duration::from_secs(5);

/// How long a connection may take to open, with TCP, TLS and login.
const CONNECT: Duration = Duration::from_secs(5);

/// How long the answer to a script is waited for, which may wait for others.
const SCRIPT: Duration = Duration::from_secs(30);

/// For how long a statement is sent again that the server undid because of another session.
const RESEND: Duration = Duration::from_secs(1);

impl Step {
    pub(crate) fn new(operation: &'static str, statement: &'static str) -> Self {
        Self { operation, statement, reserved: false, limit: LIMIT }
    }
}

impl Sessions {
    /// Connections to this address. Nothing is sent.
    pub(crate) fn new(address: Address) -> Self {
        let permits = [Semaphore::new(address.pool_max), Semaphore::new(1)];
        let (home, closed) = (Home::here(), watch::Sender::new(false));
        Self(Arc::new(Shared { address, clock: Clock::system(), home, idle: Mutex::default(), permits, closed }))
    }

    pub(crate) fn address(&self) -> &Address {
        &self.0.address
    }

    /// As [`run`](Self::run), for a function that answers with a row for each of so many keys, in which there may be no answer.
    pub(crate) async fn run_each<T>(
        &self,
        step: Step,
        params: &[Param<'_>],
        keys: usize,
        read: impl Fn(&Row) -> Result<Option<T>>,
    ) -> Result<Vec<Option<Result<T>>>> {
        let rows = self.run(step, params).await?;
        if rows.len() == keys {
            Ok(rows.iter().map(|row| read(row).transpose()).collect())
        } else {
            Err(odd(step.operation))
        }
    }

    /// Sends one statement. If the server undid it because of another session, it is sent again for up to a second; if the
    /// server takes no writes any more, once more to where the address leads by then.
    ///
    /// # Errors
    /// [`ErrorKind::Unavailable`] if the statement was definitely not applied, [`ErrorKind::Indeterminate`] if the answer
    /// is missing, [`ErrorKind::Backend`] if the server refused it for good, [`ErrorKind::Closed`] after
    /// [`close`](Self::close).
    ///
    /// # Cancel safety
    /// A statement that is under way when the future is dropped may still be applied.
    pub(crate) fn run<'a>(&'a self, step: Step, params: &'a [Param<'a>]) -> BoxFuture<'a, Result<Vec<Row>>> {
        Box::pin(async move {
            let statement = self.0.address.schema.statement(step.statement);
            let give_up = self.0.clock.now().plus(RESEND);
            let (mut pause, mut reconnections) = (Duration::from_millis(2), 1);
            loop {
                let (error, remedy) = match self.send(step, &statement, params).await {
                    Ok(rows) => return Ok(rows),
                    Err(failed) => failed,
                };
                match remedy {
                    Remedy::Resend if self.0.clock.now() < give_up => {}
                    Remedy::Reconnect if std::mem::take(&mut reconnections) > 0 => self.idle().clear(),
                    _ => return Err(error),
                }
                sleep(jittered(pause, 0.5..=1.0)).await;
                pause = (pause * 2).min(Duration::from_millis(50));
            }
        })
    }

    async fn send(&self, step: Step, statement: &str, params: &[Param<'_>]) -> Result<Vec<Row>, (Error, Remedy)> {
        let Step { operation, limit, .. } = step;
        let failed = |kind, why: String| (Error::new(kind, operation).detail(why), Remedy::None);
        let work = async {
            let permit = timeout(QUEUE, self.0.permits[usize::from(step.reserved)].acquire()).await;
            let Ok(Ok(_permit)) = permit else {
                return Err(failed(ErrorKind::Unavailable, format!("no connection became free within {QUEUE:?}")));
            };
            let session = self.session(operation).await?;
            match timeout(limit, session.client.query_typed(statement, params)).await {
                Ok(Ok(rows)) => {
                    self.idle().push(session);
                    Ok(rows)
                }
                Ok(Err(failure)) => {
                    let classified = classify(operation, &failure, true, &self.0.address.secrets);
                    if classified.1 == Remedy::Resend {
                        self.idle().push(session);
                    }
                    Err(classified)
                }
                Err(_) => Err(failed(ErrorKind::Indeterminate, format!("no answer within {limit:?}"))),
            }
        };
        self.until_closed(operation, work).await.unwrap_or_else(|closed| Err((closed, Remedy::None)))
    }

    /// What this work gives, unless the connections are closed before.
    pub(crate) async fn until_closed<T>(&self, operation: &'static str, work: impl Future<Output = T>) -> Result<T> {
        let mut closed = self.0.closed.subscribe();
        tokio::select! {
            biased;
            _ = closed.wait_for(|closed| *closed) => Err(Error::new(ErrorKind::Closed, operation)),
            done = work => Ok(done),
        }
    }

    async fn session(&self, operation: &'static str) -> Result<Session, (Error, Remedy)> {
        while let Some(session) = self.next_idle() {
            if !session.client.is_closed() {
                return Ok(session);
            }
        }
        self.connect(operation, self.0.address.config.clone(), |_| ()).await
    }

    /// A new connection, which gives its messages to `hear`. It is driven by the runtime that all of them are of.
    pub(crate) async fn connect(
        &self,
        operation: &'static str,
        config: Config,
        mut hear: impl FnMut(AsyncMessage) + Send + 'static,
    ) -> Result<Session, (Error, Remedy)> {
        let shown = &self.0.address.shown;
        let unavailable =
            |why: String| (Error::new(ErrorKind::Unavailable, operation).detail(why).at(shown), Remedy::None);
        if let Some(home) = &self.0.home {
            home.check(operation).map_err(|ended| (ended, Remedy::None))?;
        }
        let runtime = self.runtime().ok_or_else(|| unavailable("there is no tokio runtime here".into()))?;
        let (tls, mut closed) = (Clone::clone(&self.0.address.tls), self.0.closed.subscribe());
        let connecting = runtime.spawn(Box::pin(async move {
            let connected = timeout(CONNECT, config.connect(tls)).await.ok()?;
            Some(connected.map(|(client, mut connection)| {
                let driver = async move {
                    let listen = async move {
                        while let Some(Ok(message)) = poll_fn(|context| connection.poll_message(context)).await {
                            hear(message);
                        }
                    };
                    tokio::select! { () = listen => (), _ = closed.wait_for(|closed| *closed) => () }
                };
                Session { client, driver: tokio::spawn(driver).abort_handle() }
            }))
        }));
        match connecting.await {
            Ok(Some(Ok(session))) => Ok(session),
            Ok(Some(Err(failure))) => {
                let (error, remedy) = classify(operation, &failure, false, &self.0.address.secrets);
                Err((error.at(shown), remedy))
            }
            Ok(None) => Err(unavailable(format!("no connection within {CONNECT:?}"))),
            Err(_) => Err(unavailable("the runtime that was connecting ended".into())),
        }
    }

    /// Runs a script of several statements as they are.
    ///
    /// # Errors
    /// As for [`run`](Self::run); [`ErrorKind::Indeterminate`] after half a minute without an answer.
    pub(crate) fn script<'a>(&'a self, operation: &'static str, script: &'a str) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            let session = self.session(operation).await.map_err(|(error, _)| error)?;
            let done = timeout(SCRIPT, session.client.batch_execute(script)).await;
            let why =
                || format!("no answer within {SCRIPT:?}: perhaps another session has locked a table, or does the same");
            let done = done.map_err(|_| Error::new(ErrorKind::Indeterminate, operation).detail(why()))?;
            done.map_err(|failure| classify(operation, &failure, true, &self.0.address.secrets).0)
        })
    }

    /// Closes the connections. Statements that are under way, or sent later, fail with [`ErrorKind::Closed`].
    pub(crate) fn close(&self) {
        self.0.closed.send_replace(true);
        self.idle().clear();
    }

    /// The runtime on which all connections are driven.
    pub(crate) fn runtime(&self) -> Option<Handle> {
        Home::for_all(self.0.home.as_ref())
    }

    /// A connection that is closed is not dropped while others wait for the list.
    fn next_idle(&self) -> Option<Session> {
        self.idle().pop()
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Session>> {
        self.0.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

impl fmt::Debug for Sessions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Sessions").field(&self.0.address).finish()
    }
}
