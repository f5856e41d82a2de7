mod server;

use std::fmt;
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use leasehold_core::{Clock, Error, ErrorKind, Home, Result, Secrets};
use mysql_async::prelude::Queryable;
use mysql_async::{Conn, DriverError, Error as Failure, Opts, OptsBuilder, Params, Pool, PoolConstraints, Row};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::timeout;

use self::server::{Other, Server};
use crate::refusal::{Stage, classify};
use crate::sessions::SETUP;

/// The connections to the server of one address. Cloning gives another handle on the same ones.
///
/// All of them lead to one and the same server at a time: a fresh one that finds another server at the address, or a
/// statement that is refused because the server takes no writes any more, makes the others leave too. Else a session
/// that a fail-over forgot would go on asking the old server, and the statements of one step would ask two.
#[derive(Clone)]
pub(crate) struct Connections(Arc<Shared>);

struct Shared {
    opts: Opts,
    shown: String,
    secrets: Secrets,
    clock: Clock,
    turns: [Arc<Semaphore>; 3],
    generation: watch::Sender<Generation>,
    closed: watch::Sender<bool>,
    home: Option<Home>,
}

/// Which connections a statement may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lane {
    /// As many as the URL says with `pool_min` and `pool_max`.
    Common,
    /// Two, apart from the rest: so that leases are renewed also while all the others are busy.
    Reserved,
    /// As many as common ones, each kept for as long as somebody waits or holds.
    Doorbell,
}

/// The connections to one server, from when the address led to it until it does not any more.
#[derive(Clone)]
struct Generation {
    number: u64,
    server: Server,
    pools: [Pool; 3],
}

/// One connection, and the right to have it.
pub(crate) struct Session {
    pub(crate) conn: Conn,
    pub(crate) origin: Origin,
    /// An answer is not read to its end.
    amid: bool,
    /// Given back after the connection.
    _turn: OwnedSemaphorePermit,
}

/// Which session of which server it was.
#[derive(Clone, Debug)]
pub(crate) struct Origin {
    pub(crate) id: u32,
    generation: u64,
    server: Server,
}

/// What became of a session that broke.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It is in this server, if it is anywhere.
    Here,
    /// It ended with a process of the server.
    Over,
    /// It is in a server that the address does not lead to.
    Elsewhere,
}

/// How long a statement may wait for one of the connections.
const QUEUE: Duration = Duration::from_secs(5);

/// How long a connection may take, with TCP, TLS and login: about ten round trips.
const CONNECT: Duration = Duration::from_secs(8);

/// How long the connections to a server that was left may take to end.
const FAREWELL: Duration = Duration::from_secs(30);

/// How long the connections may take to close.
const CLOSE: Duration = Duration::from_secs(1);

/// Idle connections beyond the pool's minimum are closed after this.
const IDLE: Duration = Duration::from_secs(60);

/// How often in a row the address may lead to another server.
const MOVES: usize = 3;

impl Connections {
    /// Nothing is sent yet.
    pub(crate) fn new(opts: Opts, shown: String) -> Self {
        let clock = Clock::system();
        let turns = [Lane::Common, Lane::Reserved, Lane::Doorbell];
        let turns = turns.map(|lane| Arc::new(Semaphore::new(lane.constraints(&opts).max())));
        let generation = watch::Sender::new(Generation::new(0, &opts, &clock));
        let secrets = Secrets::of(opts.pass());
        let closed = watch::Sender::new(false);
        Self(Arc::new(Shared { opts, shown, secrets, clock, turns, generation, closed, home: Home::here() }))
    }

    /// To the server of this pool, with the options of its connections. The pool is asked for one of them, once, and
    /// gets it back as it was.
    pub(crate) async fn like(pool: &Pool) -> Result<Self> {
        let shown = "the server of a pool of the caller's";
        let connecting = timeout(CONNECT, contained(pool.get_conn())).await;
        let connected = connecting.map_err(|_| no_connection("connect", shown))?.unwrap_or_else(|| Err(panicked()));
        let opts = connected.map_err(|failure| refused("connect", shown, &failure, None))?.opts().clone();
        if opts.prefer_socket() && opts.socket().is_some() {
            let why = "the pool's sessions went to a local socket, which may be another server's than the address: \
                       say prefer_socket(false) in its options";
            return Err(Error::new(ErrorKind::InvalidOptions, "connect").detail(why));
        }
        Ok(Self::new(opts, shown.into()))
    }

    /// A connection of this lane, for `operation`. Ends at once when they are closed.
    pub(crate) async fn check_out(&self, lane: Lane, operation: &'static str) -> Result<Session> {
        let mut closed = self.0.closed.subscribe();
        tokio::select! {
            biased;
            _ = closed.wait_for(|closed| *closed) => Err(Error::new(ErrorKind::Closed, operation)),
            session = self.connection(lane, operation) => session,
        }
    }

    async fn connection(&self, lane: Lane, operation: &'static str) -> Result<Session> {
        let Shared { shown, secrets, turns, generation, home, .. } = &*self.0;
        home.as_ref().map_or(Ok(()), |home| home.check(operation))?;
        let turn = timeout(QUEUE, Arc::clone(&turns[lane as usize]).acquire_owned()).await;
        let Ok(Ok(turn)) = turn else {
            let why = format!("{shown}: all {} connections were busy for {QUEUE:?}; see pool_max", self.most(lane));
            return Err(Error::new(ErrorKind::Unavailable, operation).detail(why));
        };
        for _ in 0..MOVES {
            let now = generation.borrow().clone();
            let connecting = timeout(CONNECT, contained(now.pools[lane as usize].get_conn()));
            match connecting.await.map_err(|_| no_connection(operation, shown))?.unwrap_or_else(|| Err(panicked())) {
                Ok(conn) => {
                    let origin = Origin { id: conn.id(), generation: now.number, server: now.server };
                    return Ok(Session { conn, origin, amid: false, _turn: turn });
                }
                Err(Failure::Other(why)) if why.is::<Other>() => self.leave(now.number),
                // Another statement left it in between.
                Err(Failure::Driver(DriverError::PoolDisconnected)) if generation.borrow().number != now.number => {}
                Err(failure) => return Err(refused(operation, shown, &failure, Some(secrets))),
            }
        }
        let why = format!("{shown}: each connection leads to another server");
        Err(Error::new(ErrorKind::Unavailable, operation).detail(why))
    }

    /// Ends all connections to the server of this session: it is not, or not any more, the one to ask.
    pub(crate) fn leave_server_of(&self, origin: &Origin) {
        self.leave(origin.generation);
    }

    fn leave(&self, number: u64) {
        let mut left = None;
        self.0.generation.send_if_modified(|generation| {
            let is_current = generation.number == number;
            if is_current {
                let next = Generation::new(number + 1, &self.0.opts, &self.0.clock);
                left = Some(std::mem::replace(generation, next));
            }
            is_current
        });
        let Some(left) = left else { return };
        for pool in left.pools {
            // If it never runs, they end with the runtime; nobody asks them any more.
            tokio::spawn(timeout(FAREWELL, pool.disconnect()));
        }
    }

    /// Waits until the server of this session is left.
    pub(crate) fn left(&self, origin: &Origin) -> impl Future<Output = ()> + Send + use<> {
        let (mut news, number) = (self.0.generation.subscribe(), origin.generation);
        async move {
            // The sender cannot be gone before the session.
            drop(news.wait_for(|generation| generation.number != number).await);
        }
    }

    /// Ends what waits for connections, and closes them, for at most a second.
    pub(crate) async fn close(&self) {
        self.0.closed.send_replace(true);
        let [common, reserved, doorbell] = self.0.generation.borrow().pools.clone().map(Pool::disconnect);
        // It waits for statements under way; those end by themselves, and nobody needs to wait longer.
        let closing = async { tokio::join!(common, reserved, doorbell) };
        drop(timeout(CLOSE, closing).await);
    }

    /// How many connections a lane may have.
    pub(crate) fn most(&self, lane: Lane) -> usize {
        lane.constraints(&self.0.opts).max()
    }

    /// What a server is not quoted with.
    pub(crate) fn secrets(&self) -> &Secrets {
        &self.0.secrets
    }

    pub(crate) fn database(&self) -> &str {
        self.0.opts.db_name().unwrap_or_default()
    }
}

impl Generation {
    fn new(number: u64, opts: &Opts, clock: &Clock) -> Self {
        let server = Server::unknown(clock.clone());
        let pool = |lane: Lane| Pool::new(lane.opts(opts, &server));
        let pools = [pool(Lane::Common), pool(Lane::Reserved), pool(Lane::Doorbell)];
        Self { number, server, pools }
    }
}

impl Lane {
    fn constraints(self, opts: &Opts) -> PoolConstraints {
        let given = opts.pool_opts().constraints();
        let (min, max) = match self {
            Self::Common => (given.min(), given.max()),
            Self::Reserved => (0, 2),
            Self::Doorbell => (0, given.max()),
        };
        PoolConstraints::new(min, max).unwrap_or(given)
    }

    /// What the driver needs: see "Defaults of the driver that are not kept" in the README.
    fn opts(self, opts: &Opts, server: &Server) -> OptsBuilder {
        let pool = opts.pool_opts().clone().with_constraints(self.constraints(opts));
        let pool = pool.with_reset_connection(false).with_inactive_connection_ttl(IDLE);
        // They are run from the last to the first, and ours win.
        let setup = [SETUP.to_owned()].into_iter().chain(opts.setup().iter().cloned()).collect();
        let (theirs, server) = (opts.after_connect(), server.clone());
        OptsBuilder::from_opts(opts.clone()).prefer_socket(false).pool_opts(pool).setup::<String>(setup).after_connect(
            move |conn| {
                let (theirs, server) = (theirs.clone(), server.clone());
                Box::pin(async move {
                    if let Some(theirs) = theirs {
                        theirs(&mut *conn).await?;
                    }
                    server.is_at(conn).await
                })
            },
        )
    }
}

impl Session {
    /// Sends a statement, and reads the whole answer. The connection of one that is left before is not used again.
    pub(crate) async fn ask(&mut self, statement: &str, params: Params) -> Result<Vec<Row>, Failure> {
        self.amid = true;
        let answer = contained(self.conn.exec::<Row, _, _>(statement, params)).await;
        self.amid = answer.is_none();
        answer.unwrap_or_else(|| Err(panicked()))
    }

    /// Where a session that broke is, seen from this one.
    pub(crate) fn fate_of(&self, broken: &Origin) -> Fate {
        if self.origin.generation == broken.generation {
            Fate::Here
        } else if self.origin.server.succeeds(&broken.server) {
            Fate::Over
        } else {
            Fate::Elsewhere
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        if self.amid {
            // The driver would read the rest first, and for as long the connection would keep its place: for ever, if
            // the rest never comes. A command that is begun and left is what makes it give a connection up.
            let left = pin!(contained(self.conn.ping())).poll(&mut Context::from_waker(Waker::noop()));
            drop(left);
        }
    }
}

/// Runs the driver's code where its panics end: it has some that a server can cause. `None`: it did.
pub(crate) async fn contained<T>(work: impl Future<Output = T>) -> Option<T> {
    let mut work = pin!(work);
    // It is not polled again after a panic, so that nobody sees what that left behind.
    poll_fn(|context| match catch_unwind(AssertUnwindSafe(|| work.as_mut().poll(context))) {
        Ok(Poll::Ready(done)) => Poll::Ready(Some(done)),
        Ok(Poll::Pending) => Poll::Pending,
        Err(_) => Poll::Ready(None),
    })
    .await
}

/// What a server did that the driver was not prepared for.
pub(crate) fn panicked() -> Failure {
    Failure::Other("the server's answer is none that MySQL gives, and the driver stumbled over it".into())
}

fn no_connection(operation: &'static str, shown: &str) -> Error {
    let why = format!("{shown}: no connection within {CONNECT:?}");
    Error::new(ErrorKind::Unavailable, operation).detail(why)
}

fn refused(operation: &'static str, shown: &str, failure: &Failure, secrets: Option<&Secrets>) -> Error {
    classify(failure, Stage::Connecting).error(operation, &format!("{shown}: "), failure, secrets)
}

impl fmt::Debug for Connections {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The pools would print the password.
        f.debug_tuple("Connections").field(&self.0.shown).finish()
    }
}
