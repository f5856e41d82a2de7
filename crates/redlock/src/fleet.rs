use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use leasehold_core::clock::Moment;
use leasehold_core::{Error, ErrorKind, Limits, OwnerId, Queue, Result};
use leasehold_redis::KeyNames;
use tokio::sync::oneshot;

use crate::attempt::RegisteredAttempt;
use crate::batch::{Batch, Claim, ClaimState, Context, Release, Step, Verdict};
use crate::tally::Tally;
use crate::vote::Vote;

/// Beyond 32 steps a node's time for each no longer falls, and other clients wait longer.
const LIMITS: Limits = Limits { in_flight: 2, least: 4, most: 32 };

/// The nodes as they are asked together: what goes to all of them, first rounds and releases, goes in batches, of which each
/// node gets the same. A step is sent at once as long as that keeps up.
///
/// A batch makes room for the next one when a majority of the nodes has answered, so that a slow node delays nobody.
#[derive(Clone)]
pub(crate) struct Fleet(Arc<Shared>);

struct Shared {
    context: Arc<Context>,
    /// Whether steps wait for each other.
    grouped: bool,
    queue: Mutex<Queue<Step>>,
}

/// The room of a batch in flight. When it drops, the steps that wait are sent.
struct Flight {
    shared: Weak<Shared>,
    carries: Option<usize>,
}

impl Fleet {
    /// Steps wait for each other if they are `grouped`.
    pub(crate) fn new(context: Context, grouped: bool) -> Self {
        Self(Arc::new(Shared { context: Arc::new(context), grouped, queue: Mutex::new(Queue::new(LIMITS)) }))
    }

    /// The first round of an attempt, until its vote is decided. What comes later is seen to in the background: what a slow
    /// node grants is confirmed, or released if the attempt is over.
    ///
    /// # Cancel safety
    /// Dropping the future leaves an attempt that goes on until it is ended.
    pub(crate) async fn claim(&self, attempt: Arc<RegisteredAttempt>, until: Moment) -> Result<Verdict> {
        let (answer, verdict) = oneshot::channel();
        let state = ClaimState::Open(Vote::default(), answer);
        self.enter(Step::Claim(Claim { attempt, until, state }));
        let interrupted =
            |_| Error::new(ErrorKind::Indeterminate, "acquire").detail("the runtime that was sending it ended");
        verdict.await.map_err(interrupted)
    }

    /// A release at all nodes, until a majority says the same of it. The nodes that do not answer get it again in the
    /// background.
    pub(crate) async fn release(&self, names: KeyNames, owner: OwnerId, until: Moment, limit: Duration) -> Tally {
        let (answer, tally) = oneshot::channel();
        let answer = Some(answer);
        self.enter(Step::Release(Release { names, owner, until, limit, tally: Tally::default(), answer }));
        // Interrupted: nobody answered.
        tally.await.unwrap_or_default()
    }

    fn enter(&self, step: Step) {
        if !self.0.grouped {
            return self.0.send(vec![step], None);
        }
        let mut queue = self.0.queue();
        if queue.admits_one() {
            drop(queue);
            return self.0.send(vec![step], Some(1));
        }
        if queue.wait(step) {
            self.0.send_waiting(queue);
        }
    }
}

impl Shared {
    /// In a task of its own, which no caller can cancel. If it never runs, its steps are told that they were interrupted.
    fn send(self: &Arc<Self>, steps: Vec<Step>, carries: Option<usize>) {
        let flight = Flight { shared: Arc::downgrade(self), carries };
        self.context.background.run(Batch::new(Arc::clone(&self.context), steps).run(flight));
    }

    /// Sends what waits, as far as there is room.
    fn send_waiting(self: &Arc<Self>, mut queue: MutexGuard<'_, Queue<Step>>) {
        // Nobody wants to know any more.
        queue.retain(Step::is_wanted);
        // The nodes are given so long for all of them.
        let steps = queue.next(|first, step| first.limit() == step.limit());
        drop(queue);
        if let Some(steps) = steps {
            let carries = Some(steps.len());
            self.send(steps, carries);
        }
    }

    fn queue(&self) -> MutexGuard<'_, Queue<Step>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Flight {
    fn drop(&mut self) {
        let (Some(shared), Some(carries)) = (self.shared.upgrade(), self.carries) else { return };
        let mut queue = shared.queue();
        queue.landed(carries);
        // Outside of a runtime nothing can be sent: it is shutting down.
        if tokio::runtime::Handle::try_current().is_ok() {
            shared.send_waiting(queue);
        } else {
            drop(queue.give_up());
        }
    }
}

impl fmt::Debug for Fleet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fleet").field("queue", &self.0.queue).finish_non_exhaustive()
    }
}
