use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::clock::Moment;
use crate::{Clock, Error, ErrorKind, Result};

/// How long an operation on a silent store waits before it gives up.
const NO_ANSWER: Duration = Duration::from_secs(1);

/// What a test wants to go wrong in a memory store.
#[derive(Debug, Default)]
pub(crate) struct Faults {
    /// False as long as nothing ever was to go wrong, so that nothing is locked for it.
    planned: AtomicBool,
    plan: Mutex<Plan>,
}

#[derive(Debug, Default)]
struct Plan {
    failing: Option<(usize, ErrorKind)>,
    silent_until: Moment,
}

impl Faults {
    /// The next so many operations fail with `kind`.
    pub(crate) fn fail_next(&self, operations: usize, kind: ErrorKind) {
        self.plan().failing = (operations > 0).then_some((operations, kind));
        self.planned.store(true, Ordering::Release);
    }

    /// Operations get no answer until then.
    pub(crate) fn silent_until(&self, until: Moment) {
        self.plan().silent_until = until;
        self.planned.store(true, Ordering::Release);
    }

    /// Carries out an operation, unless it is to fail.
    pub(crate) async fn answer<T>(
        &self,
        clock: &Clock,
        operation: &'static str,
        carry_out: impl FnOnce() -> T,
    ) -> Result<T> {
        if !self.planned.load(Ordering::Acquire) {
            return Ok(carry_out());
        }
        let now = clock.now();
        let (kind, silent_until) = self.next(now);
        if silent_until > now {
            clock.reach(silent_until.min(now.plus(NO_ANSWER))).await;
            return Err(Error::unanswered(operation));
        }
        match kind {
            None => Ok(carry_out()),
            Some(kind) => {
                if kind == ErrorKind::Indeterminate {
                    // The reply is lost, and not the request.
                    carry_out();
                }
                Err(Error::new(kind, operation).detail("a test wants it to fail"))
            }
        }
    }

    fn next(&self, now: Moment) -> (Option<ErrorKind>, Moment) {
        let mut plan = self.plan();
        let silent_until = plan.silent_until;
        if silent_until > now {
            return (None, silent_until);
        }
        let kind = plan.failing.map(|(_, kind)| kind);
        plan.failing = plan.failing.filter(|(left, _)| *left > 1).map(|(left, kind)| (left - 1, kind));
        (kind, silent_until)
    }

    fn plan(&self) -> MutexGuard<'_, Plan> {
        self.plan.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
