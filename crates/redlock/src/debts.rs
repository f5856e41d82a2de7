use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::future::join_all;
use leasehold_core::clock::Moment;
use leasehold_core::{Clock, OwnerId};
use leasehold_redis::KeyNames;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

use crate::node::Node;

/// What nodes that gave no answer have yet to release. One task per node tells it, however much it is.
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
}

#[derive(Default)]
struct State {
    owed: HashMap<OwnerId, Debt>,
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
}

impl Debts {
    pub(crate) fn new(nodes: &[Arc<Node>], limit: Duration, clock: &Clock) -> Self {
        let ledger = |node: &Arc<Node>| {
            Arc::new(Ledger { node: Arc::clone(node), limit, clock: clock.clone(), state: Mutex::default() })
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
        let mut state = self.state();
        if state.owed.len() < Self::MOST {
            state.owed.insert(debt.owner, debt);
        }
        // Finished: with the runtime that it was spawned on.
        if state.telling.as_ref().is_none_or(JoinHandle::is_finished) {
            state.telling = Some(tokio::spawn(Arc::clone(self).tell()));
        }
    }

    async fn tell(self: Arc<Self>) {
        const SHORTEST: Duration = Duration::from_millis(100);
        const LONGEST: Duration = Duration::from_secs(1);
        let (mut pause, mut many) = (SHORTEST, Self::MANY);
        while let Some(debts) = self.some(many) {
            if self.told(debts).await {
                (pause, many) = (SHORTEST, Self::MANY);
            } else {
                sleep(pause).await;
                (pause, many) = ((pause * 2).min(LONGEST), 1);
            }
        }
    }

    /// So many that are still worth telling. `None`: there is none, and nobody tells any more.
    fn some(&self, many: usize) -> Option<Vec<Debt>> {
        let now = self.clock.now();
        let mut state = self.state();
        state.owed.retain(|_, debt| now < debt.until);
        if state.owed.is_empty() {
            state.telling = None;
            return None;
        }
        Some(state.owed.values().take(many).cloned().collect())
    }

    /// Whether the node answered. What it refused is not told again.
    async fn told(&self, debts: Vec<Debt>) -> bool {
        let tell = |debt: Debt| async move {
            let answer = self.node.release(&debt.names, debt.owner, debt.signal, self.limit).await;
            let answered = !answer.is_err_and(|failure| failure.is_transient());
            if answered {
                self.state().owed.remove(&debt.owner);
            }
            answered
        };
        join_all(debts.into_iter().map(tell)).await.into_iter().all(|answered| answered)
    }

    async fn finish(&self, within: Duration) {
        let Some(mut telling) = self.state().telling.take() else { return };
        if timeout(within, &mut telling).await.is_err() {
            telling.abort();
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Ledger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ledger")
            .field("node", &self.node)
            .field("owed", &self.state().owed.len())
            .finish_non_exhaustive()
    }
}
