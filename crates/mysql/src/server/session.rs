use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Error as Failure, Params, Row};
use tokio::sync::OwnedSemaphorePermit;

use super::identity::ServerIdentity;

/// One connection that was checked out of its pool, with the permit to use it.
pub(crate) struct Session {
    pub(crate) conn: Conn,
    pub(crate) id: SessionId,
    /// Whether a statement was sent whose answer was not read to its end.
    unanswered: bool,
    /// Dropped after the connection, so that the pool never has more permits than connections.
    _permit: OwnedSemaphorePermit,
}

/// Which session of which server a statement was sent in.
#[derive(Clone, Debug)]
pub(crate) struct SessionId {
    /// The id of the connection in its server.
    pub(crate) connection: u32,
    /// The number of the generation of connections; see [`Generation`](super::pools::Generation).
    pub(crate) generation: u64,
    pub(super) server: ServerIdentity,
}

impl Session {
    pub(super) fn new(conn: Conn, generation: u64, server: ServerIdentity, permit: OwnedSemaphorePermit) -> Self {
        let id = SessionId { connection: conn.id(), generation, server };
        Self { conn, id, unanswered: false, _permit: permit }
    }

    /// Sends a statement and reads the whole answer. If the future is dropped before it ends, the connection is closed
    /// and not used again.
    pub(crate) async fn ask(&mut self, statement: &str, params: Params) -> Result<Vec<Row>, Failure> {
        self.unanswered = true;
        let answer = catch_panic(self.conn.exec::<Row, _, _>(statement, params)).await;
        self.unanswered = answer.is_none();
        answer.unwrap_or_else(|| Err(panicked()))
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // Of a connection that was given up in the middle of a command the driver knows it already, and a further command would
        // take the late answer to that one for its own: the driver would go on with the connection, one answer behind.
        if self.unanswered && !self.conn.is_disconnected() {
            // The driver would read the rest of the answer first, and the connection would keep its place in the pool
            // for as long: for ever, if the rest never comes. The driver gives up a connection whose command was begun
            // and dropped, so this begins one.
            let begun = pin!(catch_panic(self.conn.ping())).poll(&mut Context::from_waker(Waker::noop()));
            drop(begun);
        }
    }
}

/// Runs code of the driver so that a panic ends here: a server can cause some. `None` says that the code panicked.
pub(crate) async fn catch_panic<T>(work: impl Future<Output = T>) -> Option<T> {
    let mut work = pin!(work);
    // The future is not polled again after a panic, so nobody sees the state that the panic left behind.
    poll_fn(|context| match catch_unwind(AssertUnwindSafe(|| work.as_mut().poll(context))) {
        Ok(Poll::Ready(done)) => Poll::Ready(Some(done)),
        Ok(Poll::Pending) => Poll::Pending,
        Err(_) => Poll::Ready(None),
    })
    .await
}

/// The failure that stands for a panic of the driver.
pub(crate) fn panicked() -> Failure {
    Failure::Other("the server's answer is none that MySQL gives, and the driver stumbled over it".into())
}
