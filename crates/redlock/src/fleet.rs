use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use leasehold_core::clock::Moment;
use leasehold_core::{Error, ErrorKind, OwnerId, Result};
use leasehold_redis::KeyNames;
use tokio::sync::oneshot;

use crate::attempt::RegisteredAttempt;
use crate::batch::{Batch, Claiming, Context, Releasing, Step, Verdict};
use crate::tally::Tally;

/// Largest batch. Beyond that a node's time for each step no longer falls, and other clients wait longer.
const MAX_BATCH: usize = 32;

/// While so many batches wait for a majority of the nodes, steps wait for each other.
const MAX_IN_FLIGHT: usize = 2;

/// Smallest share of a batch, where steps wait: below, the round trip is most of what they cost.
const MIN_BATCH: usize = 4;

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
    queue: Mutex<Queue>,
}

#[derive(Default)]
struct Queue {
    waiting: VecDeque<Step>,
    in_flight: usize,
    /// How many steps the batches in flight have.
    carried: usize,
}

/// The room of a batch in flight. When it drops, the steps that wait are sent.
struct Flight {
    shared: Weak<Shared>,
    carries: usize,
}

impl Fleet {
    /// Steps wait for each other if they are `grouped`.
    pub(crate) fn new(context: Context, grouped: bool) -> Self {
        Self(Arc::new(Shared { context: Arc::new(context), grouped, queue: Mutex::default() }))
    }

    /// The first round of an attempt, until its vote is decided. What comes later is seen to in the background: what a slow
    /// node grants is confirmed, or released if the attempt is over.
    ///
    /// # Cancel safety
    /// Dropping the future leaves an attempt that goes on until it is ended.
    pub(crate) async fn claim(&self, attempt: Arc<RegisteredAttempt>, until: Moment) -> Result<Verdict> {
        let (answer, verdict) = oneshot::channel();
        let limit = attempt.attempt().limit;
        self.enter(Step::claim(Claiming { attempt, until }, limit, answer));
        let interrupted =
            |_| Error::new(ErrorKind::Indeterminate, "acquire").detail("the runtime that was sending it ended");
        verdict.await.map_err(interrupted)
    }

    /// A release at all nodes, until a majority says the same of it. The nodes that do not answer get it again in the
    /// background.
    pub(crate) async fn release(&self, names: KeyNames, owner: OwnerId, until: Moment, limit: Duration) -> Tally {
        let (answer, tally) = oneshot::channel();
        self.enter(Step::release(Releasing { names, owner, until }, limit, answer));
        // Interrupted: nobody answered.
        tally.await.unwrap_or_default()
    }

    fn enter(&self, step: Step) {
        let mut queue = self.0.queue();
        let is_free = queue.in_flight < MAX_IN_FLIGHT && queue.waiting.is_empty();
        if is_free || !self.0.grouped {
            let flight = self.0.take_off(&mut queue, 1);
            drop(queue);
            self.0.send(vec![step], flight);
            return;
        }
        queue.waiting.push_back(step);
        if queue.waiting.len() >= MAX_BATCH {
            let steps = queue.next(MAX_BATCH);
            let flight = self.0.take_off(&mut queue, steps.len());
            drop(queue);
            self.0.send(steps, flight);
        }
    }
}

impl Shared {
    fn take_off(self: &Arc<Self>, queue: &mut Queue, carries: usize) -> Flight {
        queue.in_flight += 1;
        queue.carried += carries;
        Flight { shared: Arc::downgrade(self), carries }
    }

    /// In a task of its own, which no caller can cancel. If it never runs, its steps are told that they were interrupted.
    fn send(self: &Arc<Self>, steps: Vec<Step>, flight: Flight) {
        let batch = Batch::new(Arc::clone(&self.context), steps);
        self.context.background.run(batch.run(flight));
    }

    /// Sends what waits, as far as there is room.
    fn send_waiting(self: &Arc<Self>) {
        let mut queue = self.queue();
        // Nobody wants to know any more.
        queue.waiting.retain(Step::is_wanted);
        if queue.waiting.is_empty() || queue.in_flight >= MAX_IN_FLIGHT {
            return;
        }
        let even = (queue.waiting.len() + queue.carried).div_ceil(MAX_IN_FLIGHT);
        let steps = queue.next(even.clamp(MIN_BATCH, MAX_BATCH));
        let flight = self.take_off(&mut queue, steps.len());
        drop(queue);
        self.send(steps, flight);
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Queue {
    /// The next steps, at most so many, with one limit: the nodes are given so long for all of them.
    fn next(&mut self, most: usize) -> Vec<Step> {
        let limit = self.waiting.front().map(Step::limit);
        let alike = self.waiting.iter().take(most).take_while(|step| Some(step.limit()) == limit).count();
        self.waiting.drain(..alike).collect()
    }
}

impl Drop for Flight {
    fn drop(&mut self) {
        let Some(shared) = self.shared.upgrade() else { return };
        {
            let mut queue = shared.queue();
            queue.in_flight -= 1;
            queue.carried -= self.carries;
        }
        // Outside of a runtime nothing can be sent: it is shutting down.
        if tokio::runtime::Handle::try_current().is_ok() {
            shared.send_waiting();
        } else {
            shared.queue().waiting.clear();
        }
    }
}

impl fmt::Debug for Fleet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let queue = self.0.queue();
        f.debug_struct("Fleet")
            .field("waiting", &queue.waiting.len())
            .field("in_flight", &queue.in_flight)
            .finish_non_exhaustive()
    }
}
