use std::fmt;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures::future::BoxFuture;
use tokio::runtime::Handle;
use tokio::sync::Notify;

use super::Core;
use super::detached::Detached;
use super::sessions::Entered;
use super::tenure::Grip;
use super::waiting::BackOff;
use crate::{Backend, Error, ErrorKind, GrantRef, Held, LockKey, LossReason, ReleaseOutcome, Renewal, Result};

/// What a guard holds: its part of a tenure, and whoever can renew and release it. Dropping it releases.
#[must_use]
pub(crate) struct Hold {
    grip: Arc<Grip>,
    steward: Arc<dyn Steward>,
    /// Captured at acquisition, so that a drop on a foreign thread can release too.
    runtime: Handle,
}

/// How a guard's part ended.
enum End {
    Lost(LossReason),
    /// The store's grant serves others of this process still.
    OthersStay,
    Last,
}

/// The engine, as a guard sees it: without the type of its backend.
pub(super) trait Steward: Send + Sync {
    fn renew(self: Arc<Self>, grip: Arc<Grip>) -> BoxFuture<'static, Result<()>>;
    /// Gives it to the next in line here, if there is one. True if there is nothing left to release.
    fn pass_on(self: Arc<Self>, grip: &Grip, runtime: &Handle) -> bool;
    fn release(self: Arc<Self>, grip: Arc<Grip>, runtime: Handle) -> BoxFuture<'static, Result<ReleaseOutcome>>;
    /// Releases in the background, as far as there is anything to release.
    fn abandon(self: Arc<Self>, grip: &Grip, runtime: &Handle);
    /// Leaves the grant to its lease. True if it was still held.
    fn disown(&self, grip: &Grip) -> bool;
}

impl Hold {
    pub(super) fn new(grip: Grip, steward: Arc<dyn Steward>, runtime: Handle) -> Self {
        Self { grip: Arc::new(grip), steward, runtime }
    }

    pub(crate) fn grip(&self) -> &Arc<Grip> {
        &self.grip
    }

    /// Takes back a part that nobody got: it is as if it had never been.
    pub(super) fn forget(self) {
        self.grip.give_up();
    }

    pub(crate) async fn renew(&self) -> Result<()> {
        Arc::clone(&self.steward).renew(Arc::clone(&self.grip)).await
    }

    pub(crate) async fn release(self) -> Result<ReleaseOutcome> {
        if self.pass_on() {
            return Ok(ReleaseOutcome::Released);
        }
        let releasing = Arc::clone(&self.steward).release(Arc::clone(&self.grip), self.runtime.clone());
        Detached::new(self.runtime.clone(), releasing).await
    }

    pub(crate) fn disown(self) -> bool {
        self.steward.disown(&self.grip)
    }

    fn pass_on(&self) -> bool {
        Arc::clone(&self.steward).pass_on(&self.grip, &self.runtime)
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        if !self.grip.is_over() && !self.pass_on() {
            Arc::clone(&self.steward).abandon(&self.grip, &self.runtime);
        }
    }
}

impl fmt::Debug for Hold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Hold").field(&self.grip.grant).finish()
    }
}

impl<B: Backend> Steward for Core<B> {
    fn renew(self: Arc<Self>, grip: Arc<Grip>) -> BoxFuture<'static, Result<()>> {
        Box::pin(async move {
            let (tenure, key) = (&grip.tenure, &grip.grant.key);
            let error = |kind| Error::new(kind, "renew").backend(self.name()).key(key);
            if let Some(reason) = tenure.loss() {
                return Err(error(ErrorKind::Lost(reason)));
            }
            tenure.asked();
            let sent_at = self.clock.now();
            let renewal = Renewal { grant: tenure.grant.clone(), ttl: tenure.ttl };
            let answer = self.backend.renew(std::slice::from_ref(&renewal)).await.pop();
            let answer = answer.unwrap_or_else(|| Err(error(ErrorKind::Indeterminate)));
            self.settle_renewal(tenure, sent_at, &answer);
            answer.map_err(|failed| failed.within("renew", self.name(), Some(key)))?;
            tenure.loss().map_or(Ok(()), |reason| Err(error(ErrorKind::Lost(reason))))
        })
    }

    fn pass_on(self: Arc<Self>, grip: &Grip, runtime: &Handle) -> bool {
        self.pass_to_next(grip, runtime)
    }

    fn release(self: Arc<Self>, grip: Arc<Grip>, runtime: Handle) -> BoxFuture<'static, Result<ReleaseOutcome>> {
        Box::pin(async move {
            let grant = &grip.grant;
            match self.end(&grip, &runtime) {
                End::Lost(reason) => return Ok(ReleaseOutcome::AlreadyLost(reason)),
                End::OthersStay => return Ok(ReleaseOutcome::Released),
                End::Last => {}
            }
            // So that `close` does not take the connection from it.
            let _under_way = Arc::clone(&self.pending).begin();
            match self.backend.release(grant).await {
                Ok(Held::Yes) => {
                    self.queue.freed(&grant.key);
                    Ok(ReleaseOutcome::Released)
                }
                Ok(Held::No) => Ok(ReleaseOutcome::AlreadyLost(LossReason::Stolen)),
                Ok(Held::Forced) => Ok(ReleaseOutcome::AlreadyLost(LossReason::ForceReleased)),
                Err(error) => {
                    self.observer.release_failed(&grant.key, &error);
                    self.give_back(grant, grip.tenure.ttl, &runtime);
                    Err(error.within("release", self.name(), Some(&grant.key)))
                }
            }
        })
    }

    fn abandon(self: Arc<Self>, grip: &Grip, runtime: &Handle) {
        if matches!(self.end(grip, runtime), End::Last) {
            self.give_back(&grip.grant, grip.tenure.ttl, runtime);
        }
    }

    fn disown(&self, grip: &Grip) -> bool {
        let held = grip.is_held();
        self.leave(grip);
        held
    }
}

impl<B: Backend> Core<B> {
    /// Ends a guard's part on its own account, unless it was lost before.
    fn end(self: &Arc<Self>, grip: &Grip, runtime: &Handle) -> End {
        use LossReason::{Expired, MaxHold, Stolen, Unreachable};

        let reason = grip.tenure.loss();
        let last = self.leave(grip);
        // The store may still have us as the holder for a while, or in its queue, if the grant was none.
        if last && matches!(reason, Some(Expired | MaxHold | Unreachable | Stolen)) {
            self.sessions.died(&grip.grant);
            self.give_back(&grip.grant, grip.tenure.ttl, runtime);
        }
        if last && grip.tenure.in_doubt {
            self.give_back_again(&grip.grant, grip.tenure.ttl, runtime);
        }
        match reason {
            Some(reason) => End::Lost(reason),
            None if last => End::Last,
            None => End::OthersStay,
        }
    }

    /// Takes a guard off its tenure; with the last one the tenure is over, and nothing more is sent for it. True if
    /// it was the last on its grant: each level of a session has one of its own.
    pub(super) fn leave(&self, grip: &Grip) -> bool {
        let mut entered = self.sessions.lock();
        if let Some(Entered { tenure, levels }) = entered.as_mut().and_then(|entered| entered.get_mut(&grip.grant.key))
            && let Some(level) = levels.iter().rposition(|level| level.owner == grip.grant.owner)
        {
            levels.swap_remove(level);
            tenure.serve(levels);
        }
        if !grip.give_up() {
            return entered.is_some();
        }
        grip.tenure.let_go();
        self.keeper.forget(&grip.tenure);
        self.queue.ended(&grip.tenure);
        if let Some(mut entered) = entered {
            entered.remove(&grip.grant.key);
        }
        true
    }

    /// Releases in a task of its own, trying again for as long as the lease could last, or until the engine has closed.
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
                let releasing = async {
                    while let Err(error) = core.backend.release(&grant).await {
                        core.observer.release_failed(&grant.key, &error);
                        if !error.is_transient() || core.clock.now() >= give_up {
                            break;
                        }
                        let pause = core.clock.now().plus(back_off.next(None));
                        core.clock.reach(pause).await;
                    }
                };
                tokio::select! {
                    () = releasing => {}
                    // Nobody waits for it any more, and it would keep the connections.
                    () = core.closing.over(&core.clock) => {}
                }
                core.sessions.buried(grant.owner);
                core.queue.freed(&grant.key);
            }
        };
        runtime.spawn(work);
    }

    /// Gives back what this session lost on the key, before it claims it anew.
    pub(super) async fn bury_dead(&self, key: &LockKey) -> Result<()> {
        while let Some(grant) = self.sessions.dead_on(key) {
            self.backend.release(&grant).await?;
            self.sessions.buried(grant.owner);
        }
        Ok(())
    }

    /// Releases again for about a minute, each time after twice as long: a claim that got no answer may reach the store
    /// late, behind its release, when the connection that carried it was given up. So it keeps the key for nobody for
    /// about as long as it was late, and not for its lease.
    ///
    /// Nobody waits for that, and it ends with the engine. If the task never runs, the lease frees the key.
    pub(super) fn give_back_again(self: &Arc<Self>, grant: &GrantRef, ttl: Duration, runtime: &Handle) {
        const LONGEST: Duration = Duration::from_secs(32);
        let (core, clock, grant) = (Arc::downgrade(self), self.clock.clone(), grant.clone());
        runtime.spawn(async move {
            let mut pause = Duration::from_secs(1);
            while pause <= LONGEST.min(ttl) {
                clock.reach(clock.now().plus(pause)).await;
                pause *= 2;
                let Some(core) = core.upgrade().filter(|core| !core.closing.has_begun()) else { return };
                if let Ok(Held::Yes) = core.backend.release(&grant).await {
                    core.queue.freed(&grant.key);
                    return;
                }
            }
        });
    }
}

/// Counts what is under way, for those who wait until nothing is.
#[derive(Debug, Default)]
pub(super) struct Pending {
    count: AtomicUsize,
    none: Notify,
}

pub(super) struct Done(Arc<Pending>);

impl Pending {
    pub(super) fn begin(self: Arc<Self>) -> Done {
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
