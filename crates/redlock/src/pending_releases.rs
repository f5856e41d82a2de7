use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::future::join_all;
use leasehold_core::clock::Moment;
use leasehold_core::{Clock, LeaseStatus, OwnerId};
use leasehold_redis::KeyNames;
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

use crate::attempt::{ClaimAttempt, RegisteredAttempt};
use crate::error::Failure;
use crate::node::{ClaimRequest, Node};
use crate::nodes::Nodes;

/// The releases that nodes without an answer have not confirmed yet. One task per node sends them, however many there are.
///
/// A claim that got no answer may reach its node late, behind its release, when the connection that carried the claim was
/// given up. So it is released again for about a minute, each time after twice as long: then a late claim blocks the node
/// for about as long as it was late, and not for its lease. No caller waits for that.
///
/// If the runtime ends or the locker is dropped, the releases are not sent, and what is left on such a node ends with its
/// lease.
#[derive(Debug)]
pub(crate) struct PendingReleases(Vec<Arc<NodeReleases>>);

/// The pending releases of one node.
struct NodeReleases {
    node: Arc<Node>,
    limit: Duration,
    clock: Clock,
    state: Mutex<State>,
    added: Notify,
}

#[derive(Default)]
struct State {
    scheduled: HashMap<OwnerId, Scheduled>,
    /// From then on, a release that was answered is not sent again.
    closing: bool,
    /// Present while a release is scheduled.
    task: Option<JoinHandle<()>>,
}

/// The release of one owner that one node has not confirmed.
#[derive(Clone, Debug)]
pub(crate) struct PendingRelease {
    pub(crate) owner: OwnerId,
    pub(crate) names: KeyNames,
    /// Whether waiters are notified.
    pub(crate) signal: bool,
    /// From then on the release is not worth sending.
    pub(crate) until: Moment,
    /// The attempt of a claim that got no answer and may still reach the node. Nothing is released before it is over: it may
    /// have won without this node.
    pub(crate) late: Option<Arc<RegisteredAttempt>>,
}

impl PendingRelease {
    /// The release of what a node granted, for as long as the lease may last.
    pub(crate) fn of(attempt: &ClaimAttempt, until: Moment) -> Self {
        let ClaimRequest { owner, names, .. } = &attempt.request;
        Self { owner: *owner, names: names.clone(), signal: false, until, late: None }
    }

    /// The release of what a node without an answer has, or gets when the claim reaches it. Waiters are notified, because they
    /// may have taken it for a lock.
    pub(crate) fn of_late_claim(registered: &Arc<RegisteredAttempt>, until: Moment) -> Self {
        Self { signal: true, late: Some(Arc::clone(registered)), ..Self::of(registered.attempt(), until) }
    }
}

#[derive(Clone, Debug)]
struct Scheduled {
    release: PendingRelease,
    due: Moment,
    /// How long after the next answer the release is sent again, if its claim may still reach the node.
    pause: Duration,
}

const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LAST_PAUSE: Duration = Duration::from_secs(32);

impl Scheduled {
    /// Adds another release of the same owner, and makes both due at once.
    fn merge(&mut self, release: PendingRelease, now: Moment) {
        self.due = now;
        self.release.signal |= release.signal;
        self.release.until = self.release.until.max(release.until);
        self.release.late = self.release.late.take().or(release.late);
    }

    /// Schedules the release once more, after the node said that there is nothing to release. Returns false when its claim
    /// cannot come any more.
    fn repeat(&mut self, now: Moment) -> bool {
        // The lease that the claim takes when it reaches the node.
        let lease = self.release.late.as_ref().map(|late| late.attempt().request.lease);
        let Some(lease) = lease.filter(|lease| self.pause <= LAST_PAUSE.min(*lease)) else { return false };
        self.due = now.plus(self.pause);
        self.release.until = self.due.plus(lease);
        self.pause *= 2;
        true
    }

    /// Whether the attempt of a late claim is not over, so that nothing may be released.
    fn is_held_back(&self) -> bool {
        self.release.late.as_ref().is_some_and(|late| !late.attempt().is_over())
    }
}

impl PendingReleases {
    pub(crate) fn new(nodes: &Nodes, limit: Duration, clock: &Clock) -> Self {
        let releases = |node: &Arc<Node>| {
            Arc::new(NodeReleases {
                node: Arc::clone(node),
                limit,
                clock: clock.clone(),
                state: Mutex::default(),
                added: Notify::new(),
            })
        };
        Self(nodes.all().iter().map(releases).collect())
    }

    /// Has this release sent to the node at `index` in the background. Must be called inside a runtime.
    pub(crate) fn add(&self, index: usize, release: PendingRelease) {
        self.0[index].add(release);
    }

    /// Waits for the releases for at most `within`, and gives up those that are left.
    pub(crate) async fn finish(&self, within: Duration) {
        join_all(self.0.iter().map(|releases| releases.finish(within))).await;
    }
}

impl Drop for PendingReleases {
    fn drop(&mut self) {
        for releases in &self.0 {
            if let Some(task) = releases.state().task.take() {
                task.abort();
            }
        }
    }
}

impl NodeReleases {
    /// The most releases that are kept for one node. What a node has of those beyond ends with its lease.
    const MOST: usize = 16_384;
    /// How many releases are sent at a time to a node that answers; one to a node that may not.
    const AT_A_TIME: usize = 64;

    fn add(self: &Arc<Self>, release: PendingRelease) {
        let now = self.clock.now();
        let mut state = self.state();
        if let Some(scheduled) = state.scheduled.get_mut(&release.owner) {
            scheduled.merge(release, now);
        } else if state.scheduled.len() < Self::MOST {
            state.scheduled.insert(release.owner, Scheduled { release, due: now, pause: FIRST_PAUSE });
        }
        self.added.notify_one();
        // A task is finished when the runtime that it was spawned on has ended.
        if state.task.as_ref().is_none_or(JoinHandle::is_finished) {
            state.task = Some(tokio::spawn(Arc::clone(self).send_all()));
        }
    }

    /// Sends releases as they fall due, until none is scheduled.
    async fn send_all(self: Arc<Self>) {
        const SHORTEST: Duration = Duration::from_millis(100);
        const LONGEST: Duration = Duration::from_secs(1);
        let (mut pause, mut many) = (SHORTEST, Self::AT_A_TIME);
        loop {
            match self.next(many) {
                Next::Send(releases) => {
                    if self.send(releases).await {
                        (pause, many) = (SHORTEST, Self::AT_A_TIME);
                    } else {
                        sleep(pause).await;
                        (pause, many) = ((pause * 2).min(LONGEST), 1);
                    }
                }
                Next::Sleep(pause) => {
                    let _ = timeout(pause, self.added.notified()).await;
                }
                Next::End => return,
            }
        }
    }

    /// What to do next, after dropping the releases that are not worth sending any more.
    fn next(&self, many: usize) -> Next {
        let now = self.clock.now();
        let mut state = self.state();
        let closing = state.closing;
        state.scheduled.retain(|_, one| {
            let waits = one.is_held_back() && one.due <= now;
            now < one.release.until && (!waits || one.repeat(now)) && !(closing && now < one.due)
        });
        let due = state.scheduled.values().filter(|one| one.due <= now);
        let due: Vec<PendingRelease> = due.take(many).map(|one| one.release.clone()).collect();
        match state.scheduled.values().map(|one| one.due).min() {
            Some(_) if !due.is_empty() => Next::Send(due),
            Some(first) => Next::Sleep(first.since(now)),
            None => {
                // A silent node leaves thousands once: their table would stay for as long as the locker.
                state.scheduled.shrink_to_fit();
                state.task = None;
                Next::End
            }
        }
    }

    /// Sends releases, and returns whether the node answered. A release that it refused is not sent again.
    async fn send(&self, releases: Vec<PendingRelease>) -> bool {
        let send = |release: PendingRelease| async move {
            let answer = self.node.release(&release.names, release.owner, release.signal, self.limit).await;
            let answered = !answer.as_ref().is_err_and(Failure::is_transient);
            if answered {
                let nothing_there = matches!(answer, Ok(LeaseStatus::NotHeld | LeaseStatus::ForceReleased));
                self.answered(release.owner, nothing_there);
            }
            answered
        };
        join_all(releases.into_iter().map(send)).await.into_iter().all(|answered| answered)
    }

    fn answered(&self, owner: OwnerId, nothing_there: bool) {
        let now = self.clock.now();
        let mut state = self.state();
        if let Some(scheduled) = state.scheduled.get_mut(&owner)
            && !(nothing_there && scheduled.repeat(now))
        {
            state.scheduled.remove(&owner);
        }
    }

    async fn finish(&self, within: Duration) {
        let task = {
            let mut state = self.state();
            state.closing = true;
            state.task.take()
        };
        self.added.notify_one();
        let Some(mut task) = task else { return };
        if timeout(within, &mut task).await.is_err() {
            task.abort();
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What the task of a node does next.
enum Next {
    Send(Vec<PendingRelease>),
    /// Sleeps until a release is due, or one is added.
    Sleep(Duration),
    /// Ends, because nothing is scheduled.
    End,
}

impl fmt::Debug for NodeReleases {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NodeReleases")
            .field("node", &self.node)
            .field("scheduled", &self.state().scheduled.len())
            .finish_non_exhaustive()
    }
}
