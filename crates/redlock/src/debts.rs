use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::future::join_all;
use leasehold_core::clock::Moment;
use leasehold_core::{Clock, OwnerId};
use leasehold_redis::KeyNames;
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

use crate::answer::Kept;
use crate::attempt::Enlisted;
use crate::condition::Failure;
use crate::node::Node;

/// What nodes that gave no answer have yet to release. One task per node tells it, however much it is.
///
/// A claim that got no answer may reach its node late, behind its release, when the connection that carried it was given
/// up. So it is released again for about a minute, each time after twice as long, and keeps the node for nobody for about
/// as long as it was late, and not for its lease. Nobody waits for that.
///
/// If the runtime ends or the locker is dropped, it is not told, and what is left on such a node ends with its lease.
#[derive(Debug)]
pub(crate) struct Debts(Vec<Arc<Ledger>>);

/// What one node has yet to release.
struct Ledger {
    node: Arc<Node>,
    limit: Duration,
    clock: Clock,
    state: Mutex<State>,
    added: Notify,
}

#[derive(Default)]
struct State {
    owed: HashMap<OwnerId, Owed>,
    /// Nothing is told again that was answered.
    closing: bool,
    /// There while something is owed.
    telling: Option<JoinHandle<()>>,
}

/// One release.
#[derive(Clone, Debug)]
pub(crate) struct Debt {
    pub(crate) owner: OwnerId,
    pub(crate) names: KeyNames,
    /// Whether somebody may wait for it.
    pub(crate) signal: bool,
    /// From then on it is not worth telling.
    pub(crate) until: Moment,
    /// There if its claim may still come.
    pub(crate) late: Option<Late>,
}

/// A claim that got no answer.
#[derive(Clone, Debug)]
pub(crate) struct Late {
    /// What it takes when it comes.
    pub(crate) lease: Duration,
    /// Nothing is released of it as long as its attempt is not over, which may have won without this node.
    pub(crate) enlisted: Arc<Enlisted>,
}

#[derive(Clone, Debug)]
struct Owed {
    debt: Debt,
    due: Moment,
    /// How long after the next answer it is told again, if its claim may still come.
    pause: Duration,
}

const FIRST_ECHO: Duration = Duration::from_secs(1);
const LAST_ECHO: Duration = Duration::from_secs(32);

impl Owed {
    fn new(debt: Debt, now: Moment) -> Self {
        Self { debt, due: now, pause: FIRST_ECHO }
    }

    /// Adds another release of the same owner, which is told at once.
    fn merge(&mut self, debt: Debt, now: Moment) {
        self.due = now;
        self.debt.signal |= debt.signal;
        self.debt.until = self.debt.until.max(debt.until);
        self.debt.late = self.debt.late.take().or(debt.late);
    }

    /// Puts it off, after the node said that there is nothing to release. False: its claim comes no more.
    fn echo(&mut self, now: Moment) -> bool {
        let Some(late) = self.debt.late.as_ref().filter(|late| self.pause <= LAST_ECHO.min(late.lease)) else {
            return false;
        };
        self.due = now.plus(self.pause);
        self.debt.until = self.due.plus(late.lease);
        self.pause *= 2;
        true
    }

    fn is_held(&self) -> bool {
        self.debt.late.as_ref().is_some_and(|late| !late.enlisted.is_over())
    }
}

impl Debts {
    pub(crate) fn new(nodes: &[Arc<Node>], limit: Duration, clock: &Clock) -> Self {
        let ledger = |node: &Arc<Node>| {
            Arc::new(Ledger {
                node: Arc::clone(node),
                limit,
                clock: clock.clone(),
                state: Mutex::default(),
                added: Notify::new(),
            })
        };
        Self(nodes.iter().map(ledger).collect())
    }

    /// Has this node told in the background. Must be called inside a runtime.
    pub(crate) fn owe(&self, index: usize, debt: Debt) {
        self.0[index].add(debt);
    }

    /// Lets it finish for so long, and ends what is left.
    pub(crate) async fn finish(&self, within: Duration) {
        join_all(self.0.iter().map(|ledger| ledger.finish(within))).await;
    }
}

impl Drop for Debts {
    fn drop(&mut self) {
        for ledger in &self.0 {
            if let Some(telling) = ledger.state().telling.take() {
                telling.abort();
            }
        }
    }
}

impl Ledger {
    /// More are not noted. What a node that is silent for so long has of them ends with its lease.
    const MOST: usize = 16_384;
    /// So many at a time are told to a node that answers, and one to a node that may not.
    const MANY: usize = 64;

    fn add(self: &Arc<Self>, debt: Debt) {
        let now = self.clock.now();
        let mut state = self.state();
        if let Some(owed) = state.owed.get_mut(&debt.owner) {
            owed.merge(debt, now);
        } else if state.owed.len() < Self::MOST {
            state.owed.insert(debt.owner, Owed::new(debt, now));
        }
        self.added.notify_one();
        // Finished: with the runtime that it was spawned on.
        if state.telling.as_ref().is_none_or(JoinHandle::is_finished) {
            state.telling = Some(tokio::spawn(Arc::clone(self).tell()));
        }
    }

    async fn tell(self: Arc<Self>) {
        const SHORTEST: Duration = Duration::from_millis(100);
        const LONGEST: Duration = Duration::from_secs(1);
        let (mut pause, mut many) = (SHORTEST, Self::MANY);
        loop {
            match self.next(many) {
                Next::Tell(debts) => {
                    if self.told(debts).await {
                        (pause, many) = (SHORTEST, Self::MANY);
                    } else {
                        sleep(pause).await;
                        (pause, many) = ((pause * 2).min(LONGEST), 1);
                    }
                }
                Next::Rest(rest) => {
                    let _ = timeout(rest, self.added.notified()).await;
                }
                Next::Nothing => return,
            }
        }
    }

    /// Of what is still worth telling.
    fn next(&self, many: usize) -> Next {
        let now = self.clock.now();
        let mut state = self.state();
        let closing = state.closing;
        state.owed.retain(|_, owed| {
            let waits = owed.is_held() && owed.due <= now;
            now < owed.debt.until && (!waits || owed.echo(now)) && !(closing && now < owed.due)
        });
        let due: Vec<Debt> =
            state.owed.values().filter(|owed| owed.due <= now).take(many).map(|owed| owed.debt.clone()).collect();
        match state.owed.values().map(|owed| owed.due).min() {
            Some(_) if !due.is_empty() => Next::Tell(due),
            Some(first) => Next::Rest(first.since(now)),
            None => {
                state.telling = None;
                Next::Nothing
            }
        }
    }

    /// Whether the node answered. What it refused is not told again.
    async fn told(&self, debts: Vec<Debt>) -> bool {
        let tell = |debt: Debt| async move {
            let answer = self.node.release(&debt.names, debt.owner, debt.signal, self.limit).await;
            let answered = !answer.as_ref().is_err_and(Failure::is_transient);
            if answered {
                self.answered(debt.owner, matches!(answer, Ok(Kept::Gone | Kept::Forced)));
            }
            answered
        };
        join_all(debts.into_iter().map(tell)).await.into_iter().all(|answered| answered)
    }

    fn answered(&self, owner: OwnerId, gone: bool) {
        let now = self.clock.now();
        let mut state = self.state();
        if let Some(owed) = state.owed.get_mut(&owner)
            && !(gone && owed.echo(now))
        {
            state.owed.remove(&owner);
        }
    }

    async fn finish(&self, within: Duration) {
        let telling = {
            let mut state = self.state();
            state.closing = true;
            state.telling.take()
        };
        self.added.notify_one();
        let Some(mut telling) = telling else { return };
        if timeout(within, &mut telling).await.is_err() {
            telling.abort();
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What the task that tells does next.
enum Next {
    Tell(Vec<Debt>),
    /// Until something is due, or comes in.
    Rest(Duration),
    /// It ends.
    Nothing,
}

impl fmt::Debug for Ledger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ledger")
            .field("node", &self.node)
            .field("owed", &self.state().owed.len())
            .finish_non_exhaustive()
    }
}
