//! What a client holds: one lock, several, a permit, or a share.

use std::collections::BTreeMap;
use std::time::Duration;

use futures::future::{FutureExt, join_all, select_all};
use leasehold_core::{
    Capability, Clock, Error, ErrorKind, FencingToken, GuardHandle, LockGuard, Locker, LockerExt, Locks, LossReason,
    Moment, ReadGuard, ReleaseOutcome, Result, RwLockerExt, Semaphore,
};

use crate::protocol::{Access, Answer, Refusal, Request, seconds};

/// How long a release waits for the answer of the store; it is repeated in the background.
const RELEASE_BOUND: Duration = Duration::from_secs(5);

/// The locks of one client.
#[derive(Debug)]
pub(crate) enum Grant {
    Exclusive(Vec<LockGuard>),
    Shared(ReadGuard),
}

/// Acquires what is asked for. `None`: others held it for the whole wait.
pub(crate) async fn acquire(locks: &Locks, request: &Request) -> Result<Option<Grant>, Refusal> {
    let (keys, options) = (request.keys()?, request.options());
    let [key] = keys.as_slice() else {
        return Ok(locks.lock_all(keys, &options).await?.map(Grant::Exclusive));
    };
    let one = |guard| Grant::Exclusive(vec![guard]);
    Ok(match (request.permits, request.mode) {
        (Some(permits), _) => Semaphore::new(locks.locker(), key, permits)?.acquire_with(&options).await?.map(one),
        (None, Access::Write) => locks.acquire(key, &options).await?.map(one),
        (None, Access::Read) => locks.readers()?.acquire_read(key, &options).await?.map(Grant::Shared),
    })
}

/// Takes over what another process detached. `None`: not all of it is held any more.
pub(crate) async fn attach(locks: &Locks, texts: &[String], request: &Request) -> Option<Grant> {
    let options = request.options();
    let one = async |text: &String| locks.attach(&text.parse().ok()?, &options).await.ok().flatten();
    let guards: Option<Vec<_>> = join_all(texts.iter().map(one)).await.into_iter().collect();
    guards.map(Grant::Exclusive)
}

impl Grant {
    fn handles(&self) -> Vec<GuardHandle> {
        match self {
            Self::Exclusive(guards) => guards.iter().map(LockGuard::handle).collect(),
            Self::Shared(guard) => vec![guard.handle()],
        }
    }

    /// Resolves with the reason when one of its locks is lost.
    pub(crate) fn lost(&self) -> impl Future<Output = LossReason> + Send + 'static {
        select_all(self.handles().into_iter().map(|handle| handle.lost().boxed())).map(|(reason, ..)| reason)
    }

    /// Resolves when somebody waits for one of its locks.
    pub(crate) fn wanted(&self) -> impl Future<Output = ()> + Send + 'static {
        select_all(self.handles().into_iter().map(|handle| handle.wanted().boxed())).map(|_| ())
    }

    /// Until when all of it is certainly held without another renewal.
    pub(crate) fn until(&self, clock: &Clock) -> Moment {
        // Read first, so that the answer is too early and never too late.
        let now = clock.now();
        self.handles().iter().map(|handle| now.plus(handle.remaining())).min().unwrap_or(now)
    }

    /// The line that tells the client of it.
    pub(crate) fn line(&self, until: Option<Moment>, now: Moment) -> Vec<u8> {
        let handles = self.handles();
        let tokens: BTreeMap<_, _> = handles
            .iter()
            .map(|handle| (handle.key().as_str(), handle.fencing_token().map(FencingToken::get)))
            .collect();
        let token = if let [one] = handles.as_slice() { one.fencing_token().map(FencingToken::get) } else { None };
        Answer::Held { token, tokens, until: until.map(seconds), now: seconds(now) }.line()
    }

    /// Releases all of it, and answers with the first failure or loss.
    pub(crate) async fn release(self) -> Result<ReleaseOutcome> {
        let silence = || Error::new(ErrorKind::Indeterminate, "release").detail("the store gave no answer");
        let all = async {
            match self {
                Self::Shared(guard) => guard.release().await,
                Self::Exclusive(guards) => {
                    let released = join_all(guards.into_iter().map(LockGuard::release)).await;
                    let failed = |outcome: &Result<_>| !matches!(outcome, Ok(ReleaseOutcome::Released));
                    released.into_iter().find(failed).unwrap_or(Ok(ReleaseOutcome::Released))
                }
            }
        };
        tokio::time::timeout(RELEASE_BOUND, all).await.unwrap_or_else(|_| Err(silence()))
    }

    pub(crate) fn can_be_detached(&self, locks: &Locks) -> bool {
        matches!(self, Self::Exclusive(_)) && locks.capabilities().has(Capability::Detach)
    }

    /// The texts with which another process can take it over. `None` where one of its locks was lost: the others are released.
    pub(crate) fn detach(self) -> Option<Vec<String>> {
        let Self::Exclusive(guards) = self else { return None };
        guards.into_iter().map(|guard| Some(guard.detach().ok()?.expose())).collect()
    }
}
