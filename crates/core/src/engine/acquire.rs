use std::sync::Arc;

use tracing::Instrument;

use super::caller::{Caller, SeenThrough};
use super::cell::Cell;
use super::guard_inner::Hold;
use super::inner::Inner;
use super::observe::Acquired;
use super::state::{Collected, Event, Granted, Join, Outcome, WaiterId};
use crate::clock::Moment;
use crate::{FencingToken, LockKey, LockOptions, Mode, OrBusy, Result, Wait};

impl Inner {
    /// Acquires `key`, and tells how that went.
    pub(super) async fn acquire(
        self: &Arc<Self>,
        key: &LockKey,
        mode: Mode,
        options: &LockOptions,
    ) -> Result<OrBusy<Hold>> {
        let started = self.clock.now();
        let limit = match options.wait {
            Wait::Never => started,
            Wait::UpTo(patience) => started.plus(patience),
            Wait::Forever => Moment::NEVER,
        };
        let token = tracing::field::Empty;
        let span = tracing::debug_span!("acquire", backend = self.name(), key = key.as_str(), %mode, token);
        let wish = Wish { key, mode, options, limit, caller: Caller::new() };
        let result = self.wait(&wish, limit == started).instrument(span.clone()).await;
        if let Ok(Ok(hold)) = &result {
            span.record("token", hold.inner().fencing_token().map(FencingToken::get));
        }
        let outcome = match &result {
            Ok(Ok(_)) => Acquired::Granted,
            Ok(Err(_)) => Acquired::Busy,
            Err(_) => Acquired::Failed,
        };
        self.driver.observer.acquired(key, mode, outcome, self.clock.now().since(started));
        result.map_err(|error| error.within("acquire", self.name(), Some(key)))
    }

    /// Waits in the line until something comes of it, and comes for what that is.
    async fn wait(self: &Arc<Self>, wish: &Wish<'_>, is_try: bool) -> Result<OrBusy<Hold>> {
        let _seen_through = SeenThrough(&wish.caller, &*self.driver);
        let mut waiting = Waiting::join(self, wish);
        let _queued = waiting.is_behind.then(|| self.driver.observer.queued(wish.key));
        let mut limit = if is_try { Moment::NEVER } else { wish.limit };
        loop {
            let outcome = tokio::select! {
                biased;
                outcome = wish.caller.outcome(&*self.driver) => outcome,
                () = self.clock.reach(limit) => {
                    let latest = self.driver.look(|state| state.latest(self.member, wish.limit));
                    limit = if limit < latest { latest } else { Moment::NEVER };
                    self.apply(Event::TimesUp(wish.key.clone(), waiting.id));
                    continue;
                }
            };
            match outcome {
                Outcome::Granted(granted) => match waiting.collect(&granted) {
                    Collected::Yes => return Ok(Ok(Hold::new(self, granted))),
                    Collected::NotYet => {}
                    Collected::TooLate => waiting = Waiting::join(self, wish),
                },
                Outcome::Busy(busy) => return waiting.answered(Ok(Err(busy))),
                Outcome::Failed(error) => return waiting.answered(Err(error)),
            }
        }
    }
}

/// What a caller asks for.
struct Wish<'w> {
    key: &'w LockKey,
    mode: Mode,
    options: &'w LockOptions,
    limit: Moment,
    caller: Caller,
}

/// A place in the line of a key. Dropping it leaves the line, and lets go of what it was given there.
pub(super) struct Waiting<'w> {
    engine: &'w Arc<Inner>,
    key: &'w LockKey,
    id: WaiterId,
    is_behind: bool,
    is_over: bool,
}

impl<'w> Waiting<'w> {
    fn join(engine: &'w Arc<Inner>, wish: &Wish<'w>) -> Self {
        let join = Join {
            member: engine.member,
            key: wish.key.clone(),
            mode: wish.mode,
            options: wish.options.clone(),
            limit: wish.limit,
            handle: wish.caller.clone(),
        };
        let (id, is_behind) = engine.driver.with_caller(engine, &wish.caller, |state, at| state.join(at, join));
        Self { engine, key: wish.key, id, is_behind, is_over: false }
    }

    /// Not in the line, but beside it: for a lease that has another owner until then.
    pub(super) fn beside(engine: &'w Arc<Inner>, key: &'w LockKey, id: WaiterId) -> Self {
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

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        if !self.is_over {
            self.engine.apply(Event::Leave(self.key.clone(), self.id));
        }
    }
}
