use std::fmt;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures::future::BoxFuture;
use tokio::runtime::Handle;
use tokio::sync::Notify;

use super::detached::Detached;
use super::tenure::Tenure;
use super::waiting::BackOff;
use super::{Core, observe};
use crate::{Backend, Error, ErrorKind, GrantRef, Held, LossReason, ReleaseOutcome, Renewal, Result};

/// What a guard holds: a tenure, and whoever can renew and release it. Dropping it releases.
#[must_use]
pub(crate) struct Hold {
    tenure: Arc<Tenure>,
    steward: Arc<dyn Steward>,
    /// Captured at acquisition, so that a drop on a foreign thread can release too.
    runtime: Handle,
}

/// The engine, as a guard sees it: without the type of its backend.
pub(super) trait Steward: Send + Sync {
    fn renew(self: Arc<Self>, tenure: Arc<Tenure>) -> BoxFuture<'static, Result<()>>;
    fn release(self: Arc<Self>, tenure: Arc<Tenure>, runtime: Handle) -> BoxFuture<'static, Result<ReleaseOutcome>>;
    /// Releases in the background, as far as there is anything to release.
    fn abandon(self: Arc<Self>, tenure: &Arc<Tenure>, runtime: &Handle);
    /// Forgets it without releasing it.
    fn disown(&self, tenure: &Arc<Tenure>);
}

impl Hold {
    pub(super) fn new(tenure: Arc<Tenure>, steward: Arc<dyn Steward>, runtime: Handle) -> Self {
        Self { tenure, steward, runtime }
    }

    pub(crate) fn tenure(&self) -> &Arc<Tenure> {
        &self.tenure
    }

    pub(crate) async fn renew(&self) -> Result<()> {
        Arc::clone(&self.steward).renew(Arc::clone(&self.tenure)).await
    }

    pub(crate) async fn release(self) -> Result<ReleaseOutcome> {
        let releasing = Arc::clone(&self.steward).release(Arc::clone(&self.tenure), self.runtime.clone());
        Detached::new(self.runtime.clone(), releasing).await
    }

    /// Leaves the grant to its lease. True if it was still held.
    pub(crate) fn disown(self) -> bool {
        let held = self.tenure.let_go();
        self.steward.disown(&self.tenure);
        held
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        Arc::clone(&self.steward).abandon(&self.tenure, &self.runtime);
    }
}

impl fmt::Debug for Hold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Hold").field(&self.tenure.grant).finish()
    }
}

impl<B: Backend> Steward for Core<B> {
    fn renew(self: Arc<Self>, tenure: Arc<Tenure>) -> BoxFuture<'static, Result<()>> {
        Box::pin(async move {
            let error = |kind| Error::new(kind, "renew").backend(self.name()).key(&tenure.grant.key);
            if let Some(reason) = tenure.loss() {
                return Err(error(ErrorKind::Lost(reason)));
            }
            let sent_at = self.clock.now();
            let renewal = Renewal { grant: tenure.grant.clone(), ttl: tenure.ttl };
            let answer = self.backend.renew(std::slice::from_ref(&renewal)).await.pop();
            let answer = answer.unwrap_or_else(|| Err(error(ErrorKind::Indeterminate)));
            self.settle_renewal(&tenure, sent_at, &answer);
            answer.map_err(|failed| failed.within("renew", self.name(), Some(&tenure.grant.key)))?;
            tenure.loss().map_or(Ok(()), |reason| Err(error(ErrorKind::Lost(reason))))
        })
    }

    fn release(self: Arc<Self>, tenure: Arc<Tenure>, runtime: Handle) -> BoxFuture<'static, Result<ReleaseOutcome>> {
        Box::pin(async move {
            self.keeper.forget(&tenure);
            if let Some(reason) = self.end(&tenure, &runtime) {
                return Ok(ReleaseOutcome::AlreadyLost(reason));
            }
            let grant = &tenure.grant;
            match self.backend.release(grant).await {
                Ok(Held::Yes) => {
                    self.queue.freed(&grant.key);
                    Ok(ReleaseOutcome::Released)
                }
                Ok(Held::No) => Ok(ReleaseOutcome::AlreadyLost(LossReason::Stolen)),
                Ok(Held::Forced) => Ok(ReleaseOutcome::AlreadyLost(LossReason::ForceReleased)),
                Err(error) => {
                    observe::release_failed(self.name(), &grant.key, &error);
                    self.give_back(grant, tenure.ttl, &runtime);
                    Err(error.within("release", self.name(), Some(&grant.key)))
                }
            }
        })
    }

    fn abandon(self: Arc<Self>, tenure: &Arc<Tenure>, runtime: &Handle) {
        self.keeper.forget(tenure);
        if tenure.is_held() && self.end(tenure, runtime).is_none() {
            self.give_back(&tenure.grant, tenure.ttl, runtime);
        }
    }

    fn disown(&self, tenure: &Arc<Tenure>) {
        self.keeper.forget(tenure);
    }
}

impl<B: Backend> Core<B> {
    /// Ends a tenure on our own account, unless it was lost before: then says why.
    fn end(self: &Arc<Self>, tenure: &Arc<Tenure>, runtime: &Handle) -> Option<LossReason> {
        let reason = tenure.loss();
        match reason {
            None => {
                tenure.let_go();
            }
            // The store may still have us as the holder for a while.
            Some(LossReason::MaxHold | LossReason::Unreachable) => self.give_back(&tenure.grant, tenure.ttl, runtime),
            Some(_) => {}
        }
        reason
    }

    /// Releases in a task of its own, trying again for as long as the lease could last.
    ///
    /// If the task never runs, because the runtime is gone, the lease frees the key.
    pub(super) fn give_back(self: &Arc<Self>, grant: &GrantRef, ttl: Duration, runtime: &Handle) {
        let work = {
            let core = Arc::clone(self);
            let grant = grant.clone();
            let done = Arc::clone(&self.pending).begin();
            async move {
                let _done = done;
                let mut back_off = BackOff::after_failure();
                let give_up = core.clock.now().plus(ttl);
                while let Err(error) = core.backend.release(&grant).await {
                    observe::release_failed(core.name(), &grant.key, &error);
                    if !error.is_transient() || core.clock.now() >= give_up {
                        break;
                    }
                    let pause = core.clock.now().plus(back_off.next(None));
                    core.clock.reach(pause).await;
                }
                core.queue.freed(&grant.key);
            }
        };
        runtime.spawn(work);
    }
}

/// Counts what is under way, for those who wait until nothing is.
#[derive(Debug, Default)]
pub(super) struct Pending {
    count: AtomicUsize,
    none: Notify,
}

struct Done(Arc<Pending>);

impl Pending {
    fn begin(self: Arc<Self>) -> Done {
        self.count.fetch_add(1, Ordering::AcqRel);
        Done(self)
    }

    pub(super) async fn all_done(&self) {
        loop {
            let mut none = pin!(self.none.notified());
            none.as_mut().enable();
            if self.count.load(Ordering::Acquire) == 0 {
                return;
            }
            none.await;
        }
    }
}

impl Drop for Done {
    fn drop(&mut self) {
        if self.0.count.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.0.none.notify_waiters();
        }
    }
}
