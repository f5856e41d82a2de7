use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use leasehold_core::{LockKey, Notification, Subscription};
use mysql_async::prelude::Queryable;
use rand::Rng;
use tokio::sync::{OwnedSemaphorePermit, watch};
use tokio::time::{Instant, sleep_until, timeout};

use crate::connections::{Session, contained};

/// One place in the queue of a key: first waited for, then ours. Dropping it gives it up.
#[derive(Debug)]
pub(super) struct Bell {
    pub(super) key: LockKey,
    /// Until when it is kept; `None` for as long as somebody has it in hand.
    until: watch::Sender<Option<Instant>>,
    state: watch::Receiver<State>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Awaited,
    /// Whether somebody else had it when we asked for it.
    Ours {
        after_others: bool,
    },
    /// The server does not play along.
    Broken,
}

/// How long one statement waits. The server's own limit, so that a connection that broke in silence is noticed.
const WAIT: Duration = Duration::from_secs(10);

/// How long the server may take to answer.
const ANSWER: Duration = Duration::from_secs(2);

impl Bell {
    /// Waits for it on a connection of its own. If the task never runs, the connection closes, and nobody is waited for.
    ///
    /// It is no bell any more once `left` ends, which is when the server is not the one to ask.
    pub(super) fn wait(
        key: LockKey,
        name: String,
        session: Session,
        left: impl Future<Output = ()> + Send + 'static,
        free: OwnedSemaphorePermit,
    ) -> Self {
        let (until, kept) = watch::channel(None);
        let (news, state) = watch::channel(State::Awaited);
        tokio::spawn(async move {
            let rung = tokio::select! {
                rung = contained(ring(session, &name, kept, &news)) => rung.flatten(),
                () = left => None,
            };
            // Before the news: whoever hears it may want another.
            drop(free);
            if rung.is_none() {
                news.send_replace(State::Broken);
            }
        });
        Self { key, until, state }
    }

    pub(super) fn is_awaited(&self) -> bool {
        *self.state.borrow() == State::Awaited
    }

    pub(super) fn is_ours(&self) -> bool {
        matches!(*self.state.borrow(), State::Ours { .. })
    }

    pub(super) fn came_after_others(&self) -> bool {
        *self.state.borrow() == State::Ours { after_others: true }
    }

    pub(super) fn is_over(&self) -> bool {
        self.state.has_changed().is_err()
    }

    /// Nobody says so when a lease runs out, so it is given up by itself then.
    pub(super) fn keep_for(&self, lease: Duration) {
        self.until.send_replace(Some(Instant::now() + lease));
    }

    /// Gives it up.
    pub(super) fn let_go(&self) {
        self.until.send_replace(Some(Instant::now()));
    }

    /// Ends when the server has heard that it was given up, or cannot be told.
    pub(super) async fn ended(&self) {
        let mut state = self.state.clone();
        while state.changed().await.is_ok() {}
    }
}

/// Waits for the bell, keeps it, gives it up. `None`: the server does not play along.
async fn ring(
    mut session: Session,
    name: &str,
    mut kept: watch::Receiver<Option<Instant>>,
    news: &watch::Sender<State>,
) -> Option<()> {
    let mut given_up = std::pin::pin!(async move {
        loop {
            let until = *kept.borrow_and_update();
            let reached = async {
                match until {
                    Some(until) => sleep_until(until).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = reached => return,
                changed = kept.changed() => if changed.is_err() { return },
            }
        }
    });
    let wait = format!("SELECT IS_USED_LOCK('{name}') IS NOT NULL, GET_LOCK('{name}', {})", WAIT.as_secs());
    let mut after_others = false;
    loop {
        let answer = timeout(WAIT + ANSWER, session.conn.query_first::<(bool, Option<bool>), _>(&wait));
        tokio::select! {
            // With the statement under way, the connection closes, and the server takes us off its queue.
            () = &mut given_up => return Some(()),
            answer = answer => {
                let Ok(Ok(Some((used, Some(ours))))) = answer else { return None };
                after_others |= used;
                if ours {
                    break;
                }
            }
        }
    }
    news.send_replace(State::Ours { after_others });
    given_up.await;
    // Late, it closes the connection, which does the same.
    drop(timeout(ANSWER, session.conn.query_drop(format!("DO RELEASE_LOCK('{name}')"))).await);
    Some(())
}

/// Hears when it is our turn; and while it is, and the key is held all the same, asks to try again and again.
pub(super) struct Ear {
    bell: Arc<Bell>,
    next: Option<Instant>,
    pause: Duration,
}

/// Between two tries of a key that somebody holds who did not come through the queue.
const PAUSES: [Duration; 2] = [Duration::from_millis(2), Duration::from_millis(50)];

impl Ear {
    pub(super) fn of(bell: Arc<Bell>) -> Self {
        Self { bell, next: None, pause: PAUSES[0] }
    }
}

#[async_trait]
impl Subscription for Ear {
    async fn next(&mut self) -> Notification {
        let mut state = self.bell.state.clone();
        let news = state.wait_for(|state| *state != State::Awaited).await.map(|state| *state);
        // What it hears no more it must not ask the row for again and again: another may be had.
        if !matches!(news, Ok(State::Ours { .. })) {
            return Notification::Ended;
        }
        if let Some(next) = self.next {
            sleep_until(next).await;
        }
        self.next = Some(Instant::now() + self.pause.mul_f64(rand::rng().random_range(0.5..=1.0)));
        self.pause = (self.pause * 2).min(PAUSES[1]);
        Notification::Freed
    }
}
