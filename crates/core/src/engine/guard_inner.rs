//! The inner part of a guard: whether its lease is held, and how it is renewed, released, detached or downgraded.

use std::fmt;
use std::future::pending;
use std::pin::pin;
use std::sync::{Arc, Weak};
use std::time::Duration;

use super::caller::{Caller, DetachOnDrop};
use super::cell::{Cell, EndOnce};
use super::inner::Inner;
use super::state::{End, Granted, GuardRef, GuardRelease, Join, LeaseCell, WaiterId};
use crate::clock::Moment;
use crate::{
    Capability, Error, ErrorKind, FencingToken, GrantRef, LockKey, LockOptions, LossReason, Mode, OwnerId,
    ReleaseOutcome, Result,
};

/// The inner part of every guard. Dropping it releases the guard.
#[must_use]
pub(crate) struct GuardInner(GuardState);

/// What a guard knows.
#[derive(Clone)]
pub(crate) struct GuardState {
    engine: Arc<Inner>,
    grant: GuardGrant,
}

/// What a handle on a guard knows. It keeps no engine, and so no connection, alive.
#[derive(Clone)]
pub(crate) struct WeakGuardState {
    engine: Weak<Inner>,
    grant: GuardGrant,
}

/// What a guard was granted, and whether it is over.
#[derive(Clone)]
pub(crate) struct GuardGrant {
    guard: GuardRef,
    number: u16,
    cell: Cell,
    since: Moment,
    /// `None` for the first guard of its lease: then it is in the cell.
    own: Option<Arc<Own>>,
}

/// What a guard has of its own, and shares with its handles.
struct Own {
    owner: OwnerId,
    over: EndOnce,
}

impl GuardInner {
    pub(super) fn new(engine: &Arc<Inner>, granted: Granted<Cell>) -> Self {
        let Granted { guard, owner, number, cell } = granted;
        let (engine, since) = (Arc::clone(engine), engine.clock.now());
        engine.driver.observer.guard_began();
        let is_first = owner == cell.owner() && cell.begin_first();
        let own = (!is_first).then(|| Arc::new(Own { owner, over: EndOnce::default() }));
        Self(GuardState { engine, grant: GuardGrant { guard, number, cell, since, own } })
    }

    pub(crate) fn state(&self) -> &GuardState {
        &self.0
    }

    pub(crate) async fn renew(&self) -> Result<()> {
        let engine = &self.0.engine;
        let error = |kind| Error::new(kind, "renew").with_backend(engine.name()).key(self.0.key());
        let lost = || self.0.loss().map_or(Ok(()), |reason| Err(error(ErrorKind::Lost(reason))));
        lost()?;
        let caller = Caller::new();
        if engine.driver.with(engine, |state, at| state.renew_now(at, &self.0.grant.guard, caller.clone())) {
            let answer = caller.answer(&*engine.driver).await;
            answer.map_err(|failed| failed.within("renew", engine.name(), Some(self.0.key())))?;
        }
        lost()
    }

    pub(crate) async fn release(self) -> Result<ReleaseOutcome> {
        let engine = &self.0.engine;
        let caller = Caller::new();
        let ended = self.0.release_guard(Some(&caller));
        match ended {
            GuardRelease::Passed => return Ok(ReleaseOutcome::Released),
            GuardRelease::Gone => {
                let lost = self.0.loss();
                return Ok(lost.map_or(ReleaseOutcome::Released, ReleaseOutcome::AlreadyLost));
            }
            GuardRelease::Sent | GuardRelease::Asked => {}
        }
        let _detach_on_drop = DetachOnDrop(&caller, &*engine.driver);
        match caller.answer(&*engine.driver).await {
            Ok(answer) => Ok(ended.outcome(answer, self.0.grant.cell.end())),
            Err(error) => Err(error.within("release", engine.name(), Some(self.0.key()))),
        }
    }

    /// Leaves the lease in the store, for another process to attach.
    pub(crate) fn detach(self) -> Result<()> {
        let engine = &self.0.engine;
        let error = |kind| Error::new(kind, "detach").with_backend(engine.name()).key(self.0.key());
        // Nobody could release what is left to nobody.
        if let Some(why) = engine.capabilities.why_not(Capability::Detach) {
            return Err(error(ErrorKind::Unsupported).detail(format!("the lock is released: {why}")));
        }
        let held = self.0.is_held() && engine.driver.with(engine, |state, at| state.detach(at, &self.0.grant.guard));
        let lost = || error(ErrorKind::Lost(self.0.loss().unwrap_or(LossReason::Expired)));
        self.0.left_to_others(held.then_some(())).ok_or_else(lost)
    }

    /// Ends this guard and begins its downgrade. `None` if the lease was not held any more.
    pub(super) fn downgrade(&self, caller: &Caller, join: Join<Caller>) -> Option<WaiterId> {
        let (engine, guard) = (&self.0.engine, &self.0.grant.guard);
        let ask = || engine.driver.with_caller(engine, caller, |state, at| state.downgrade(at, guard, join));
        self.0.left_to_others(self.0.is_held().then(ask).flatten())
    }

    /// Downgrades this writer to a reader on the same engine.
    pub(crate) async fn downgraded(self, options: &LockOptions) -> Result<Self> {
        let engine = Arc::clone(&self.0.engine);
        let options = options.clone().or(&engine.defaults);
        engine.check("downgrade", self.0.key(), Mode::Shared, &options)?;
        engine.downgrade(self, &options).await
    }
}

impl Drop for GuardInner {
    fn drop(&mut self) {
        if !self.0.grant.is_over() {
            self.0.release_guard(None);
        }
    }
}

impl GuardGrant {
    pub(crate) fn key(&self) -> &LockKey {
        self.cell.key()
    }

    pub(crate) fn mode(&self) -> Mode {
        self.cell.mode()
    }

    /// The grant of the guard, with its own owner id where each level of a session has one.
    pub(crate) fn grant(&self) -> GrantRef {
        let grant = self.cell.grant();
        let owner = self.own.as_ref().map_or(grant.owner, |own| own.owner);
        GrantRef { owner, ..grant }
    }

    /// The number of the guard on its lease: how many guards had the lease before, or which co-reader it is.
    pub(crate) fn number(&self) -> u16 {
        self.number
    }

    pub(crate) fn fencing_token(&self) -> Option<FencingToken> {
        self.cell.epoch().map(|epoch| FencingToken::new(epoch, self.number))
    }

    /// How the guard ended when it was released, dropped, detached or downgraded: by the loss that came before, if one did. Its
    /// lease may go on with other guards.
    fn over(&self) -> &EndOnce {
        self.own.as_ref().map_or_else(|| self.cell.first_over(), |own| &own.over)
    }

    fn is_over(&self) -> bool {
        self.over().get().is_some()
    }
}

impl WeakGuardState {
    pub(crate) fn grant(&self) -> &GuardGrant {
        &self.grant
    }

    /// `None`: the engine is gone, and its guards with it.
    pub(crate) fn state(&self) -> Option<GuardState> {
        Some(GuardState { engine: self.engine.upgrade()?, grant: self.grant.clone() })
    }

    pub(crate) fn loss(&self) -> Option<LossReason> {
        match self.state() {
            Some(state) => state.loss(),
            None => self.grant.over().get().and_then(End::loss),
        }
    }

    /// Resolves when the guard has ended: with the reason if it was lost, also after it has ended since.
    pub(crate) async fn ended(self) -> Option<LossReason> {
        let cell = &self.grant.cell;
        loop {
            let mut changed = pin!(cell.changed());
            changed.as_mut().enable();
            // Asked first: a guard may be lost and dropped between the two.
            let is_over = self.grant.is_over() || matches!(cell.end(), Some(End::Released | End::Detached));
            let loss = self.loss();
            let Some(state) = self.state().filter(|_| loss.is_none() && !is_over) else { return loss };
            let clock = state.engine.clock.clone();
            drop(state);
            tokio::select! {
                () = changed => {}
                () = clock.reach(cell.limit()) => {}
            }
        }
    }

    /// Resolves when somebody waits for the key, and never once the guard has ended.
    pub(crate) async fn wanted(self) {
        const PAUSE: Duration = Duration::from_millis(100);
        const ASKS_THE_STORE: u32 = 10;
        for round in 0.. {
            let Some(state) = self.state().filter(GuardState::is_held) else { break };
            let (engine, key) = (Arc::clone(&state.engine), state.key().clone());
            drop(state);
            let asks = round % ASKS_THE_STORE == 0 && engine.capabilities.has(Capability::Queue);
            if engine.driver.look(|all| all.is_wanted(&key)) || asks && engine.counts_waiters(&key).await {
                return;
            }
            drop(engine);
            tokio::time::sleep(PAUSE).await;
        }
        pending::<()>().await;
    }

    /// Resolves when no release of the key is under way, or is repeated, in this process.
    pub(crate) async fn settled(self) {
        const PAUSE: Duration = Duration::from_millis(5);
        // What is under way keeps the engine.
        while self.state().is_some_and(|state| state.engine.driver.look(|all| all.gives_back(state.key()))) {
            tokio::time::sleep(PAUSE).await;
        }
    }
}

impl GuardState {
    pub(crate) fn grant(&self) -> &GuardGrant {
        &self.grant
    }

    pub(crate) fn downgrade(&self) -> WeakGuardState {
        WeakGuardState { engine: Arc::downgrade(&self.engine), grant: self.grant.clone() }
    }

    pub(crate) fn key(&self) -> &LockKey {
        self.grant.key()
    }

    pub(crate) fn backend(&self) -> &'static str {
        self.engine.name()
    }

    /// Why the guard was lost. `None` while it is held, and for ever once it ended without a loss.
    pub(crate) fn loss(&self) -> Option<LossReason> {
        let over = self.grant.over();
        let end = over.get().or_else(|| {
            let lease = self.lease_end();
            // The guard may have ended meanwhile, and its lease have been lost by the next guard.
            over.get().or(lease)
        });
        end.and_then(End::loss)
    }

    fn lease_end(&self) -> Option<End> {
        let cell = &self.grant.cell;
        if cell.end().is_none() && self.engine.clock.now() >= cell.limit() {
            // The timer task has not had the time yet to end the lease.
            self.engine.driver.tick();
        }
        cell.end()
    }

    pub(crate) fn is_held(&self) -> bool {
        let cell = &self.grant.cell;
        !self.grant.is_over() && cell.end().is_none() && self.engine.clock.now() < cell.limit()
    }

    pub(crate) fn remaining(&self) -> Duration {
        if self.is_held() { self.grant.cell.limit().since(self.engine.clock.now()) } else { Duration::ZERO }
    }

    /// Marks the guard as over if its lease goes on elsewhere (`Some`).
    fn left_to_others<T>(&self, came_to: Option<T>) -> Option<T> {
        if came_to.is_some() {
            self.grant.over().set(End::Released);
            self.grant.cell.notify();
            self.was_held(self.engine.clock.now());
        }
        came_to
    }

    fn release_guard(&self, by: Option<&Caller>) -> GuardRelease {
        let engine = &self.engine;
        let (ended, now) = engine.driver.with(engine, |state, at| {
            let now = at.now;
            let ended = state.release_guard(at, &self.grant.guard, by.cloned());
            if ended != GuardRelease::Gone {
                // Before the lease goes on with another guard, or back to the store.
                self.grant.over().set(End::Released);
            }
            (ended, now)
        });
        if ended == GuardRelease::Gone {
            self.grant.over().set(self.lease_end().unwrap_or(End::Released));
        }
        if ended != GuardRelease::Sent {
            // No action of the state wakes a task that waits for the loss of this guard alone.
            self.grant.cell.notify();
        }
        self.was_held(now);
        ended
    }

    /// When the guard began.
    pub(super) fn since(&self) -> Moment {
        self.grant.since
    }

    /// Records how long the guard was held: until now, or until it was lost.
    fn was_held(&self, now: Moment) {
        let held = self.grant.cell.ended_at().unwrap_or(now).min(now).since(self.grant.since);
        self.engine.driver.observer.guard_ended(self.key(), self.grant.fencing_token(), held);
    }
}

impl fmt::Debug for GuardInner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Guard").field(&self.0.grant.grant()).finish()
    }
}
