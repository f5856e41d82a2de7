use std::fmt;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use leasehold_core::{Clock, Error, ErrorKind, Home, Result, Secrets};
use mysql_async::{DriverError, Error as Failure, Opts, Pool};
use tokio::runtime::Handle;
use tokio::sync::{Semaphore, watch};
use tokio::time::timeout;

use super::failure::{Progress, classify};
use super::identity::OtherServer;
use super::pools::{Generation, PoolKind};
use super::session::{Session, SessionId, catch_panic, panicked};

/// The connections to the server of one address. A clone shares them.
///
/// All of them lead to one server at a time. When a fresh connection finds another server at the address, or a statement
/// is refused because the server takes no writes any more, all connections are replaced. Otherwise a session that a
/// fail-over left behind would go on asking the old server, and the statements of one operation would ask two servers.
#[derive(Clone)]
pub(crate) struct Connections(Arc<Shared>);

struct Shared {
    opts: Opts,
    shown: String,
    secrets: Secrets,
    clock: Clock,
    permits: [Arc<Semaphore>; 3],
    generation: watch::Sender<Generation>,
    closed: watch::Sender<bool>,
    home: Option<Home>,
}

/// How long a statement may wait for a connection of its pool to become free.
const QUEUE: Duration = Duration::from_secs(5);

/// How long a connection may take to open, with TCP, TLS and login: about ten round trips.
const CONNECT: Duration = Duration::from_secs(8);

/// How long the connections to a server that was left may take to close.
const LEAVE: Duration = Duration::from_secs(30);

/// How long [`Connections::close`] takes at most.
const CLOSE: Duration = Duration::from_secs(1);

/// How many times one statement follows the address to another server.
const MOVES: usize = 3;

impl Connections {
    /// Connections with these options, of which errors show `shown`. Nothing is sent.
    pub(crate) fn new(opts: Opts, shown: String) -> Self {
        let clock = Clock::system();
        let permits = PoolKind::ALL.map(|kind| Arc::new(Semaphore::new(kind.constraints(&opts).max())));
        let generation = watch::Sender::new(Generation::new(0, &opts, &clock));
        let secrets = Secrets::of(opts.pass());
        let closed = watch::Sender::new(false);
        Self(Arc::new(Shared { opts, shown, secrets, clock, permits, generation, closed, home: Home::here() }))
    }

    /// Connections to the server of this pool, with the options of its connections. The pool is asked for one
    /// connection, once, and gets it back as it was.
    pub(crate) async fn like(pool: &Pool) -> Result<Self> {
        let shown = "the server of a pool of the caller's";
        let connecting = timeout(CONNECT, catch_panic(pool.get_conn())).await;
        let connected = connecting.map_err(|_| no_connection("connect", shown))?.unwrap_or_else(|| Err(panicked()));
        let opts = connected.map_err(|failure| refused("connect", shown, &failure, None))?.opts().clone();
        if opts.prefer_socket() && opts.socket().is_some() {
            let why = "the pool's sessions went to a local socket, which may be another server's than the address: \
                       say prefer_socket(false) in its options";
            return Err(Error::new(ErrorKind::InvalidOptions, "connect").detail(why));
        }
        Ok(Self::new(opts, shown.into()))
    }

    /// Checks a connection out of a pool. Waits for a free one, and opens one if there is none. Ends at once when the
    /// connections are closed.
    pub(crate) async fn check_out(&self, kind: PoolKind, operation: &'static str) -> Result<Session> {
        let mut closed = self.0.closed.subscribe();
        tokio::select! {
            biased;
            _ = closed.wait_for(|closed| *closed) => Err(Error::new(ErrorKind::Closed, operation)),
            session = self.connection(kind, operation) => session,
        }
    }

    async fn connection(&self, kind: PoolKind, operation: &'static str) -> Result<Session> {
        let Shared { shown, secrets, permits, generation, home, .. } = &*self.0;
        home.as_ref().map_or(Ok(()), |home| home.check(operation))?;
        let permit = timeout(QUEUE, Arc::clone(&permits[kind as usize]).acquire_owned()).await;
        let Ok(Ok(permit)) = permit else {
            let why = format!("{shown}: all {} connections were busy for {QUEUE:?}; see pool_max", self.max(kind));
            return Err(Error::new(ErrorKind::Unavailable, operation).detail(why));
        };
        for _ in 0..MOVES {
            let now = generation.borrow().clone();
            let connecting = timeout(CONNECT, for_all(home.as_ref(), catch_panic(now.pools[kind as usize].get_conn())));
            match connecting.await.map_err(|_| no_connection(operation, shown))?.unwrap_or_else(|| Err(panicked())) {
                Ok(conn) => return Ok(Session::new(conn, now.number, now.server, permit)),
                Err(Failure::Other(why)) if why.is::<OtherServer>() => self.leave(now.number),
                // Another statement left the server in between. When it is closing, nobody waits for this.
                Err(Failure::Driver(DriverError::PoolDisconnected)) => {}
                Err(failure) => return Err(refused(operation, shown, &failure, Some(secrets))),
            }
        }
        let why = format!("{shown}: each connection leads to another server");
        Err(Error::new(ErrorKind::Unavailable, operation).detail(why))
    }

    /// Replaces all connections of the generation with this number, because its server is not the one to ask any more.
    pub(crate) fn leave(&self, number: u64) {
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
            // If the task never runs, the connections end with the runtime; no statement uses them any more.
            tokio::spawn(timeout(LEAVE, pool.disconnect()));
        }
    }

    /// Waits until the server of this session is left.
    pub(crate) fn left(&self, session: &SessionId) -> impl Future<Output = ()> + Send + use<> {
        let (mut generations, number) = (self.0.generation.subscribe(), session.generation);
        async move {
            // The sender cannot be gone before the session.
            drop(generations.wait_for(|generation| generation.number != number).await);
        }
    }

    /// Ends all waits for connections with [`ErrorKind::Closed`], and closes the connections, within a second.
    pub(crate) async fn close(&self) {
        self.0.closed.send_replace(true);
        let [common, reserved, queue] = self.0.generation.borrow().clone().pools.map(Pool::disconnect);
        // The driver waits for statements under way; those end by themselves, and nobody needs to wait longer.
        let closing = async { tokio::join!(common, reserved, queue) };
        drop(timeout(CLOSE, closing).await);
    }

    /// How many connections a pool may have.
    pub(crate) fn max(&self, kind: PoolKind) -> usize {
        kind.constraints(&self.0.opts).max()
    }

    /// The password, which no error may show when it quotes the server.
    pub(crate) fn secrets(&self) -> &Secrets {
        &self.0.secrets
    }

    pub(crate) fn database(&self) -> &str {
        self.0.opts.db_name().unwrap_or_default()
    }
}

fn no_connection(operation: &'static str, shown: &str) -> Error {
    let why = format!("{shown}: no connection within {CONNECT:?}");
    Error::new(ErrorKind::Unavailable, operation).detail(why)
}

fn refused(operation: &'static str, shown: &str, failure: &Failure, secrets: Option<&Secrets>) -> Error {
    classify(failure, Progress::Connecting).error(operation, &format!("{shown}: "), failure, secrets)
}

impl fmt::Debug for Connections {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The pools would print the password.
        f.debug_tuple("Connections").field(&self.0.shown).finish()
    }
}

/// Opens a connection with the runtime of all callers: with that of one, which may rest, it would be silent for the others.
async fn for_all<F: Future>(home: Option<&Home>, connecting: F) -> F::Output {
    let (runtime, mut connecting) = (Home::for_all(home), pin!(connecting));
    poll_fn(|context| {
        let _entered = runtime.as_ref().map(Handle::enter);
        connecting.as_mut().poll(context)
    })
    .await
}
