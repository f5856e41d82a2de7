//! The future of `acquire`: a waiter in the wait queue of a key, until it is granted, busy or failed.

use std::sync::Arc;

use tracing::Instrument;

use super::caller::{Caller, DetachOnDrop};
use super::cell::Cell;
use super::guard_inner::GuardInner;
use super::inner::Inner;
use super::observe::Acquired;
use super::state::{Collected, Event, Granted, Join, Outcome, WaiterId};
use crate::clock::Moment;
use crate::{FencingToken, LockKey, LockOptions, Mode, OrBusy, Result};

impl Inner {
    /// Acquires `key`, and records the outcome in span, log and metrics.
    pub(super) async fn acquire(
        self: &Arc<Self>,
        key: &LockKey,
        mode: Mode,
        options: &LockOptions,
    ) -> Result<OrBusy<GuardInner>> {
        let started = self.clock.now();
        let limit = options.wait.limit(started);
        let token = tracing::field::Empty;
        let span = tracing::debug_span!("acquire", backend = self.name(), key = key.as_str(), %mode, token);
        let request = AcquireRequest { key, mode, options, limit, caller: Caller::new() };
        let result = self.wait(&request, limit == started).instrument(span.clone()).await;
        let token = result.as_ref().ok().and_then(|answer| answer.as_ref().ok()?.state().fencing_token());
        span.record("token", token.map(FencingToken::get));
        let outcome = match &result {
            Ok(Ok(_)) => Acquired::Granted,
            Ok(Err(_)) => Acquired::Busy,
            Err(_) => Acquired::Failed,
        };
        let waited = self.clock.now().since(started);
        span.in_scope(|| self.driver.observer.acquired(key, mode, outcome, token, waited));
        result.map_err(|error| error.within("acquire", self.name(), Some(key)))
    }

    /// Waits in the wait queue until there is an outcome. After a grant, collects the guard; if the guard is gone by then,
    /// joins the queue again.
    async fn wait(self: &Arc<Self>, request: &AcquireRequest<'_>, is_try: bool) -> Result<OrBusy<GuardInner>> {
        let _detach_on_drop = DetachOnDrop(&request.caller, &*self.driver);
        let mut waiting = WaiterHandle::join(self, request);
        let _queued = waiting.is_behind.then(|| self.driver.observer.queued(request.key));
        let mut limit = if is_try { Moment::NEVER } else { request.limit };
        loop {
            let outcome = tokio::select! {
                biased;
                outcome = request.caller.outcome(&*self.driver) => outcome,
                () = self.clock.reach(limit) => {
                    let latest = self.driver.look(|state| state.latest(self.member, request.limit));
                    limit = if limit < latest { latest } else { Moment::NEVER };
                    self.apply(Event::TimesUp(request.key.clone(), waiting.id));
                    continue;
                }
            };
            match outcome {
                Outcome::Granted(granted) => match waiting.collect(&granted) {
                    Collected::Yes => return Ok(Ok(GuardInner::new(self, granted))),
                    Collected::NotYet => {}
                    Collected::TooLate => waiting = WaiterHandle::join(self, request),
                },
                Outcome::Busy(busy) => return waiting.answered(Ok(Err(busy))),
                Outcome::Failed(error) => return waiting.answered(Err(error)),
            }
        }
    }
}

/// One call of `acquire`.
struct AcquireRequest<'w> {
    key: &'w LockKey,
    mode: Mode,
    options: &'w LockOptions,
    limit: Moment,
    caller: Caller,
}

/// A waiter in the wait queue of a key. Dropping it leaves the queue, and releases a guard that was offered and not
/// collected.
pub(super) struct WaiterHandle<'w> {
    engine: &'w Arc<Inner>,
    key: &'w LockKey,
    id: WaiterId,
    is_behind: bool,
    is_over: bool,
}

impl<'w> WaiterHandle<'w> {
    fn join(engine: &'w Arc<Inner>, request: &AcquireRequest<'w>) -> Self {
        let join = Join {
            member: engine.member,
            key: request.key.clone(),
            mode: request.mode,
            options: request.options.clone(),
            limit: request.limit,
            handle: request.caller.clone(),
        };
        let (id, is_behind) = engine.driver.with_caller(engine, &request.caller, |state, at| state.join(at, join));
        Self { engine, key: request.key, id, is_behind, is_over: false }
    }

    /// A waiter outside of the wait queue: for an attach or a downgrade, which wait for no other holder.
    pub(super) fn outside_queue(engine: &'w Arc<Inner>, key: &'w LockKey, id: WaiterId) -> Self {
        Self { engine, key, id, is_behind: false, is_over: false }
    }

    pub(super) fn collect(&mut self, granted: &Granted<Cell>) -> Collected {
        let collected = self.engine.driver.look(|state| state.collect(self.id, &granted.guard));
        self.is_over = collected != Collected::NotYet;
        collected
    }

    pub(super) fn answered<T>(mut self, result: T) -> T {
        self.is_over = true;
        result
    }
}

impl Drop for WaiterHandle<'_> {
    fn drop(&mut self) {
        if !self.is_over {
            self.engine.apply(Event::Leave(self.key.clone(), self.id));
        }
    }
}
