//! The future of `acquire`: a waiter in the wait queue of a key, until it is granted, busy or failed.

use std::sync::Arc;
use std::time::Duration;

use tracing::Instrument;

use super::caller::{Caller, DetachOnDrop};
use super::cell::Cell;
use super::guard_inner::GuardInner;
use super::inner::Inner;
use super::long_wait::LongWait;
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
        let options = options.clone().or(&self.defaults);
        self.check("acquire", key, mode, &options)?;
        let token = tracing::field::Empty;
        let span = tracing::debug_span!("acquire", backend = self.name(), key = key.as_str(), %mode, token);
        let request = AcquireRequest { key, mode, options, caller: Caller::new() };
        let _detach_on_drop = DetachOnDrop(&request.caller, &*self.driver);
        let (waiting, joined) = span.in_scope(|| WaiterHandle::join(self, &request, None));
        let result = self.wait(&request, waiting, joined).instrument(span.clone()).await;
        let guard = result.as_ref().ok().and_then(|answer| answer.as_ref().ok());
        let token = guard.and_then(|guard| guard.state().grant().fencing_token());
        span.record("token", token.map(FencingToken::get));
        let outcome = match &result {
            Ok(Ok(_)) => Acquired::Granted,
            Ok(Err(_)) => Acquired::Busy,
            Err(_) => Acquired::Failed,
        };
        let waited = guard.map_or_else(|| self.clock.now(), |guard| guard.state().since()).since(joined.at);
        span.in_scope(|| self.driver.observer.acquired(key, mode, outcome, token, waited));
        result.map_err(|error| error.within("acquire", self.name(), Some(key)))
    }

    /// Waits in the wait queue until there is an outcome. After a grant, collects the guard; if the guard is gone by then,
    /// joins the queue again.
    async fn wait(
        self: &Arc<Self>,
        request: &AcquireRequest<'_>,
        mut waiting: WaiterHandle<'_>,
        joined: Joined,
    ) -> Result<OrBusy<GuardInner>> {
        let _queued = waiting.is_behind.then(|| self.driver.observer.queued(request.key));
        let mut long_wait = LongWait::of(self, request.key, joined.at, request.options.warn_after);
        let of_a_try = if joined.limit == joined.at { self.longest() } else { Duration::ZERO };
        let mut limit = joined.limit.plus(of_a_try);
        loop {
            let outcome = tokio::select! {
                biased;
                outcome = request.caller.outcome(&*self.driver) => outcome,
                () = long_wait.warns() => continue,
                () = self.clock.reach(limit) => {
                    let latest = self.driver.look(|state| state.latest(self.member, joined.limit));
                    limit = if limit < latest { latest } else { Moment::NEVER };
                    self.apply(Event::TimesUp(request.key.clone(), waiting.id));
                    continue;
                }
            };
            match outcome {
                Outcome::Granted(granted) => match waiting.collect(&granted) {
                    Collected::Yes => return Ok(Ok(GuardInner::new(self, granted))),
                    Collected::NotYet => waiting.is_polled(),
                    Collected::TooLate => waiting = WaiterHandle::join(self, request, Some(joined.limit)).0,
                },
                Outcome::Busy(busy) => return waiting.answered(Ok(Err(busy))),
                Outcome::Failed(error) => return waiting.answered(Err(error)),
                Outcome::Called => waiting.is_polled(),
            }
        }
    }
}

/// One call of `acquire`.
struct AcquireRequest<'w> {
    key: &'w LockKey,
    mode: Mode,
    options: LockOptions,
    caller: Caller,
}

/// When a caller joined the wait queue, and the limit of its wait.
#[derive(Clone, Copy)]
struct Joined {
    at: Moment,
    limit: Moment,
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
    /// Joins the wait queue. Without a limit from before, the wait counts from now.
    fn join(engine: &'w Arc<Inner>, request: &AcquireRequest<'w>, limit: Option<Moment>) -> (Self, Joined) {
        let AcquireRequest { key, mode, options, caller } = request;
        engine.driver.with_caller(engine, caller, |state, at| {
            let (options, handle, now) = (options.clone(), caller.clone(), at.now);
            let limit = limit.unwrap_or_else(|| options.wait.limit(now));
            let join = Join { member: engine.member, key: LockKey::clone(key), mode: *mode, options, limit, handle };
            let (id, is_behind) = state.join(at, join);
            (Self { engine, key, id, is_behind, is_over: false }, Joined { at: now, limit })
        })
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

    /// Answers that the task of the waiter is polled.
    fn is_polled(&self) {
        self.engine.apply(Event::Polled(self.key.clone(), self.id));
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
