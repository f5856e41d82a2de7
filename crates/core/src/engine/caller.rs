//! How a task that waits is reached: it gets an outcome or an answer, and polls a request that only it needs.

use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use futures::future::BoxFuture;
use tokio::runtime::Handle;

use super::cell::Cell;
use super::state::Outcome;
use crate::{LeaseStatus, Result};

/// Runs a future whether or not anybody waits for it, on this runtime, if one is given.
pub(super) trait Spawn {
    fn spawn(&self, runtime: Option<&Handle>, work: BoxFuture<'static, ()>);
}

/// A task that waits: for an outcome in the wait queue of a key, or for an answer of the store.
#[derive(Clone)]
pub(super) struct Caller(Arc<CallerInner>);

struct CallerInner {
    state: Mutex<CallerState>,
    /// The runtime of the task. What it polls stays there, and does not move to that of another task which depends on it.
    runtime: Option<Handle>,
}

#[derive(Default)]
pub(super) struct CallerState {
    pub(super) outcome: Option<Outcome<Cell>>,
    pub(super) answer: Option<Result<LeaseStatus>>,
    waker: Option<Waker>,
    /// The request of this caller on which no other caller depends; the caller polls it.
    request: Option<BoxFuture<'static, ()>>,
    detached: bool,
}

impl Caller {
    pub(super) fn new() -> Self {
        Self(Arc::new(CallerInner { state: Mutex::default(), runtime: Handle::try_current().ok() }))
    }

    /// Waits for the outcome in the wait queue. Cancel safe.
    pub(super) async fn outcome(&self, spawner: &impl Spawn) -> Outcome<Cell> {
        poll_fn(|context| self.poll(context, spawner, |state| state.outcome.take())).await
    }

    /// Waits for an answer of the store. Cancel safe.
    pub(super) async fn answer(&self, spawner: &impl Spawn) -> Result<LeaseStatus> {
        poll_fn(|context| self.poll(context, spawner, |state| state.answer.take())).await
    }

    /// Moves the request of this caller, and later ones, to tasks of their own: they go on although the caller is not
    /// polled.
    pub(super) fn detach(&self, spawner: &impl Spawn) {
        let request = {
            let mut state = self.lock();
            state.detached = true;
            state.request.take()
        };
        if let Some(request) = request {
            spawner.spawn(self.runtime(), request);
        }
    }

    pub(super) fn poll_itself(&self, spawner: &impl Spawn, request: BoxFuture<'static, ()>) {
        let mut state = self.lock();
        if state.detached {
            drop(state);
            return spawner.spawn(self.runtime(), request);
        }
        state.request = Some(request);
        let waker = state.waker.take();
        drop(state);
        waker.into_iter().for_each(Waker::wake);
    }

    pub(super) fn runtime(&self) -> Option<&Handle> {
        self.0.runtime.as_ref()
    }

    fn poll<T>(
        &self,
        context: &mut Context<'_>,
        spawner: &impl Spawn,
        take: impl Fn(&mut CallerState) -> Option<T>,
    ) -> Poll<T> {
        let (mut state, mut waker) = (self.lock(), None);
        loop {
            if let Some(found) = take(&mut state) {
                drop(state);
                return Poll::Ready(found);
            }
            // While this task polls its request, it need not be woken: it looks again afterwards.
            waker = state.waker.take().or(waker);
            let Some(mut request) = state.request.take() else { break };
            // Not under the lock: the request may end with the answer to this caller.
            drop(state);
            let ended = request.as_mut().poll(context).is_ready();
            state = self.lock();
            if ended {
                continue;
            }
            if !state.detached {
                state.request = Some(request);
                break;
            }
            drop(state);
            spawner.spawn(self.runtime(), request);
            state = self.lock();
        }
        let found = take(&mut state);
        if found.is_none() {
            let known = waker.take_if(|known| known.will_wake(context.waker()));
            state.waker = Some(known.unwrap_or_else(|| context.waker().clone()));
        }
        drop(state);
        found.map_or(Poll::Pending, Poll::Ready)
    }

    pub(super) fn update(&self, update: impl FnOnce(&mut CallerState)) {
        let mut state = self.lock();
        update(&mut state);
        let waker = state.waker.take();
        drop(state);
        waker.into_iter().for_each(Waker::wake);
    }

    fn lock(&self) -> MutexGuard<'_, CallerState> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Moves the request of a caller to a task of its own when it is dropped, so that the request is finished in any case.
/// Dropping the future of a store's driver does not recall a command that was sent (measured with fred and `mysql_async`).
pub(super) struct DetachOnDrop<'c, S: Spawn>(pub(super) &'c Caller, pub(super) &'c S);

impl<S: Spawn> Drop for DetachOnDrop<'_, S> {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.detached = true;
        let (request, waker) = (state.request.take(), state.waker.take());
        drop(state);
        if let Some(request) = request {
            self.1.spawn(self.0.runtime(), request);
        }
        // A waker that is dropped may drop a guard of the engine: not later, under the lock of the driver.
        drop(waker);
    }
}
