use std::time::Duration;

use leasehold_core::LockKey;
use mysql_async::prelude::Queryable;
use tokio::sync::{OwnedSemaphorePermit, watch};
use tokio::time::{Instant, sleep_until, timeout};

use crate::server::session::{Session, catch_panic};

/// The advisory lock of a key, on a connection of its own: first waited for, then held. Dropping it gives it up.
#[derive(Debug)]
pub(super) struct AdvisoryLock {
    pub(super) key: LockKey,
    /// When the lock is given up; `None` for as long as a subscription or a grant has it.
    until: watch::Sender<Option<Instant>>,
    state: watch::Receiver<State>,
}

/// The state of an advisory lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// In the queue of the server.
    WaitedFor,
    /// Held here; `after_others` says whether somebody else held it when it was asked for.
    Held { after_others: bool },
    /// Lost: the connection broke, or the server does not support such locks.
    Broken,
}

/// How long one statement waits for the lock. The server ends it then, so that a connection that broke in silence is
/// noticed.
const WAIT: Duration = Duration::from_secs(10);

/// How long the server may take to answer, beside that.
const ANSWER: Duration = Duration::from_secs(2);

impl AdvisoryLock {
    /// Starts a task that waits for the lock named `name` on this connection, keeps it, and gives it up. If the task never
    /// runs, the connection closes, and nobody waits for it.
    ///
    /// The lock counts as broken once `left` ends, which says that the address leads to another server.
    pub(super) fn wait(
        key: LockKey,
        name: String,
        session: Session,
        left: impl Future<Output = ()> + Send + 'static,
        permit: OwnedSemaphorePermit,
    ) -> Self {
        let (until, kept) = watch::channel(None);
        let (states, state) = watch::channel(State::WaitedFor);
        tokio::spawn(async move {
            let given_up = tokio::select! {
                given_up = catch_panic(hold(session, &name, kept, &states)) => given_up.flatten(),
                () = left => None,
            };
            // Before the state: a waiter that sees it may subscribe again, and needs the permit.
            drop(permit);
            if given_up.is_none() {
                states.send_replace(State::Broken);
            }
        });
        Self { key, until, state }
    }

    pub(super) fn state(&self) -> State {
        *self.state.borrow()
    }

    pub(super) fn is_over(&self) -> bool {
        self.state.has_changed().is_err()
    }

    /// Keeps the lock for as long as a lease. Nobody notes that a lease ran out, so the lock is given up by itself then.
    pub(super) fn keep_for(&self, lease: Duration) {
        self.until.send_replace(Some(Instant::now() + lease));
    }

    /// Gives the lock up now.
    pub(super) fn give_up(&self) {
        self.until.send_replace(Some(Instant::now()));
    }

    pub(super) fn states(&self) -> watch::Receiver<State> {
        self.state.clone()
    }

    /// Waits until the server has released the lock, or cannot be reached. Cancel safe.
    pub(super) async fn ended(&self) {
        let mut state = self.state.clone();
        while state.changed().await.is_ok() {}
    }
}

/// Waits for the lock, holds it, and gives it up. `None`: the connection broke, or the server does not support it.
async fn hold(
    mut session: Session,
    name: &str,
    mut kept: watch::Receiver<Option<Instant>>,
    states: &watch::Sender<State>,
) -> Option<()> {
    let mut given_up = std::pin::pin!(async move {
        loop {
            let until = *kept.borrow_and_update();
            tokio::select! {
                () = sleep_until(until.unwrap_or_else(Instant::now)), if until.is_some() => return,
                changed = kept.changed() => if changed.is_err() { return },
            }
        }
    });
    let wait = format!("SELECT IS_USED_LOCK('{name}') IS NOT NULL, GET_LOCK('{name}', {})", WAIT.as_secs());
    let mut after_others = false;
    loop {
        let answer = timeout(WAIT + ANSWER, session.conn.query_first::<(bool, Option<bool>), _>(&wait));
        tokio::select! {
            // The statement is under way, so the connection closes, and the server takes it off its queue.
            () = &mut given_up => return Some(()),
            answer = answer => {
                let Ok(Ok(Some((used, Some(granted))))) = answer else { return None };
                after_others |= used;
                if granted {
                    break;
                }
            }
        }
    }
    states.send_replace(State::Held { after_others });
    given_up.await;
    // If the answer is late, the connection is closed, which releases the lock as well.
    drop(timeout(ANSWER, session.conn.query_drop(format!("DO RELEASE_LOCK('{name}')"))).await);
    Some(())
}

#[cfg(test)]
pub(super) mod tests {
    use std::sync::Arc;

    use super::*;

    /// What the task of a lock has that a test makes without a connection.
    pub(in super::super) struct Task {
        pub(in super::super) states: watch::Sender<State>,
        pub(in super::super) until: watch::Receiver<Option<Instant>>,
    }

    pub(in super::super) fn lock_in(state: State, key: &LockKey) -> (Arc<AdvisoryLock>, Task) {
        let ((until, kept), (states, state)) = (watch::channel(None), watch::channel(state));
        (Arc::new(AdvisoryLock { key: key.clone(), until, state }), Task { states, until: kept })
    }

    impl Task {
        /// Gives the lock up as soon as it is told to, and a second later notes that the server has released it.
        pub(in super::super) async fn release(mut self) {
            self.until.wait_for(|until| until.is_some_and(|until| until <= Instant::now())).await.unwrap();
            tokio::time::sleep(Duration::from_millis(900)).await;
        }
    }
}
