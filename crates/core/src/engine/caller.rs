use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use futures::future::BoxFuture;
use tokio::runtime::Handle;

use super::cell::Cell;
use super::state::Outcome;
use crate::{LeaseStatus, Result};

/// Runs a future whether or not anybody waits for it.
pub(super) trait Spawn {
    fn spawn(&self, work: BoxFuture<'static, ()>);
}

/// Who waits for something: a caller in the line of a key, or one that waits for an answer of the store.
#[derive(Clone)]
pub(super) struct Caller(Arc<Callee>);

struct Callee {
    told: Mutex<Told>,
    /// Where it is: what is sent for it is carried out there, and not where the release of somebody else came to an end.
    runtime: Option<Handle>,
}

#[derive(Default)]
pub(super) struct Told {
    pub(super) outcome: Option<Outcome<Cell>>,
    pub(super) answer: Option<Result<LeaseStatus>>,
    waker: Option<Waker>,
    /// What this caller has in the store's hands, and nobody else depends on.
    request: Option<BoxFuture<'static, ()>>,
    detached: bool,
}

impl Caller {
    pub(super) fn new() -> Self {
        Self(Arc::new(Callee { told: Mutex::default(), runtime: Handle::try_current().ok() }))
    }

    /// What it came to. Cancel safe.
    pub(super) async fn outcome(&self, spawner: &impl Spawn) -> Outcome<Cell> {
        poll_fn(|context| self.poll(context, spawner, |told| told.outcome.take())).await
    }

    /// What the store said. Cancel safe.
    pub(super) async fn answer(&self, spawner: &impl Spawn) -> Result<LeaseStatus> {
        poll_fn(|context| self.poll(context, spawner, |told| told.answer.take())).await
    }

    /// It is not polled any more: what it has under way goes on by itself.
    pub(super) fn detach(&self, spawner: &impl Spawn) {
        let request = {
            let mut told = self.lock();
            told.detached = true;
            told.request.take()
        };
        if let Some(request) = request {
            spawner.spawn(request);
        }
    }

    pub(super) fn poll_itself(&self, spawner: &impl Spawn, request: BoxFuture<'static, ()>) {
        let mut told = self.lock();
        if told.detached {
            drop(told);
            return spawner.spawn(request);
        }
        told.request = Some(request);
        let waker = told.waker.take();
        drop(told);
        waker.into_iter().for_each(Waker::wake);
    }

    pub(super) fn runtime(&self) -> Option<&Handle> {
        self.0.runtime.as_ref()
    }

    fn poll<T>(
        &self,
        context: &mut Context<'_>,
        spawner: &impl Spawn,
        take: impl Fn(&mut Told) -> Option<T>,
    ) -> Poll<T> {
        let waker = context.waker().clone();
        let (request, waker) = {
            let mut told = self.lock();
            if let Some(found) = take(&mut told) {
                return Poll::Ready(found);
            }
            (told.request.take(), told.waker.replace(waker))
        };
        drop(waker);
        let Some(mut request) = request else { return Poll::Pending };
        // Not under the lock: its answer may be this caller's.
        let ended = request.as_mut().poll(context).is_ready();
        let mut told = self.lock();
        let found = take(&mut told);
        if !ended && told.detached {
            drop(told);
            spawner.spawn(request);
        } else if !ended {
            told.request = Some(request);
        }
        found.map_or(Poll::Pending, Poll::Ready)
    }

    pub(super) fn tell(&self, tell: impl FnOnce(&mut Told)) {
        let mut told = self.lock();
        tell(&mut told);
        let waker = told.waker.take();
        drop(told);
        waker.into_iter().for_each(Waker::wake);
    }

    fn lock(&self) -> MutexGuard<'_, Told> {
        self.0.told.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A caller that sees a request through: in place as long as it is polled, and in a task of its own from the moment in which
/// it is dropped. Dropping a driver's future never un-sends a command (measured with fred and `mysql_async`).
pub(super) struct SeenThrough<'c, S: Spawn>(pub(super) &'c Caller, pub(super) &'c S);

impl<S: Spawn> Drop for SeenThrough<'_, S> {
    fn drop(&mut self) {
        let mut told = self.0.lock();
        told.detached = true;
        let (request, waker) = (told.request.take(), told.waker.take());
        drop(told);
        if let Some(request) = request {
            self.1.spawn(request);
        }
        // A waker that is dropped may drop a guard of the engine: not later, under the lock of the driver.
        drop(waker);
    }
}
