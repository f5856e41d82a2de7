use std::future::pending;
use std::time::Duration;

use crate::clock::Moment;
use crate::{Clock, Error, LockOptions, Result, Wait};

/// One wait that several requests share.
pub(crate) struct Patience {
    clock: Clock,
    since: Moment,
    wait: Wait,
}

impl Patience {
    pub(crate) fn of(options: &LockOptions) -> Self {
        let clock = Clock::system();
        Self { since: clock.now(), clock, wait: options.wait }
    }

    /// What is left of the wait. [`Wait::Never`] once it is over.
    pub(crate) fn left(&self) -> Wait {
        match self.wait {
            Wait::UpTo(limit) => match limit.saturating_sub(self.clock.now().since(self.since)) {
                Duration::ZERO => Wait::Never,
                left => Wait::UpTo(left),
            },
            wait => wait,
        }
    }

    pub(crate) fn has_limit(&self) -> bool {
        matches!(self.wait, Wait::UpTo(limit) if !limit.is_zero())
    }

    /// Asks, for no longer than the wait. A store that gives no answer in it is an error, which is this one, and no holder that is
    /// in the way. A try is answered when the store answers.
    pub(crate) async fn within<T>(
        &self,
        unanswered: impl FnOnce() -> Error,
        asked: impl Future<Output = Result<T>>,
    ) -> Result<T> {
        let over = async {
            match self.wait {
                Wait::UpTo(limit) if self.has_limit() => self.clock.reach(self.since.plus(limit)).await,
                _ => pending().await,
            }
        };
        tokio::select! {
            biased;
            answer = asked => answer,
            () = over => Err(unanswered().detail("the store gave no answer within the wait")),
        }
    }
}
