//! What the handles and guards of one engine share.

use std::cell::Cell;
use std::panic::catch_unwind;
use std::pin::pin;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio::runtime::{self, Handle};
use tokio::sync::{Mutex, Notify};

use super::driver::Driver;
use super::state::{Event, Member, longest};
use crate::clock::Moment;
use crate::home::Home;
use crate::{Backend, Capabilities, Capability, Clock, Error, ErrorKind, Holders, LockKey, LockOptions, Mode, Result};

/// The part of an engine that its handles, guards and requests share.
pub(super) struct Inner {
    pub(super) backend: Arc<dyn Backend>,
    pub(super) capabilities: Capabilities,
    pub(super) clock: Clock,
    /// What counts where a request chooses nothing.
    pub(super) defaults: LockOptions,
    pub(super) driver: Arc<Driver<Self>>,
    pub(super) member: Member,
    /// Held by the waiter that asks who holds its key, for a warning: a thousand that wait long ask one after the other.
    pub(super) asks: Mutex<()>,
    /// Set when the engine is closed: the moment at which it stops waiting for what is under way.
    pub(super) closed: OnceLock<Moment>,
    /// `Backend::close` was called.
    pub(super) backend_closed: AtomicBool,
    /// Notified when no request of this engine is under way any more.
    pub(super) idle: Notify,
    /// Where the engine was made, if threads of its own drive that runtime: requests go on there, whatever becomes of the
    /// runtimes of the callers.
    pub(super) home: Option<Home>,
}

impl Inner {
    /// Refuses bad input before anything is sent.
    pub(super) fn check(
        &self,
        operation: &'static str,
        key: &LockKey,
        mode: Mode,
        options: &LockOptions,
    ) -> Result<()> {
        let error = |kind| Error::new(kind, operation).with_backend(self.name()).key(key);
        options.check().map_err(|wrong| wrong.within(operation, self.name(), Some(key)))?;
        let shortest = self.capabilities.shortest_ttl();
        if options.ttl < shortest {
            let why = format!("a ttl of {:?} is shorter than this store can time: {shortest:?}", options.ttl);
            return Err(error(ErrorKind::InvalidOptions).detail(why));
        }
        if mode == Mode::Shared
            && let Some(why) = self.capabilities.why_not(Capability::Shared)
        {
            return Err(error(ErrorKind::Unsupported).detail(format!("no shared mode: {why}")));
        }
        if self.is_closed() {
            return Err(error(ErrorKind::Closed));
        }
        if Handle::try_current().is_err() {
            return Err(error(ErrorKind::Unsupported).detail("it needs a tokio runtime to run in"));
        }
        if !has_timers() {
            let why = "the tokio runtime has no timers, without which no lease is renewed: build it with `enable_time`";
            return Err(error(ErrorKind::Unsupported).detail(why));
        }
        Ok(())
    }

    /// Ends a step of the backend that ends too late: nothing that a store does keeps a caller for ever. Backends keep to that
    /// limit themselves, with errors that say more.
    pub(super) async fn bounded<T>(&self, operation: &'static str, step: impl Future<Output = Result<T>>) -> Result<T> {
        let answer = within(self.longest(), step).await;
        answer.unwrap_or_else(|| Err(Error::unanswered(operation)))
    }

    pub(super) fn longest(&self) -> Duration {
        longest(self.backend.answers_within())
    }

    /// Ends a call for an operator that ends too late. It may take several steps, or ask one server after the other.
    pub(super) async fn bounded_for_operators<T>(
        &self,
        operation: &'static str,
        call: impl Future<Output = Result<T>>,
    ) -> Result<T> {
        within(self.backend.answers_within() * 5, call).await.unwrap_or_else(|| Err(Error::unanswered(operation)))
    }

    /// Whether the store has somebody in the queue of the key.
    pub(super) async fn counts_waiters(&self, key: &LockKey) -> bool {
        let seen = self.bounded("inspect", self.backend.inspect(key)).await;
        seen.is_ok_and(|seen| seen.waiters.is_some_and(|waiters| waiters > 0))
    }

    pub(super) fn name(&self) -> &'static str {
        self.capabilities.backend()
    }

    pub(super) fn is_closed(&self) -> bool {
        self.closed.get().is_some()
    }

    /// Closes the engine to new calls and releases what it holds. Waits for these releases and for what is under way, for
    /// twice the time of an answer: one for the step under way, one for the step behind it.
    pub(super) async fn wind_up(self: &Arc<Self>) {
        let patience = self.backend.answers_within().saturating_mul(2);
        let limit = *self.closed.get_or_init(|| self.clock.now().plus(patience));
        self.apply(Event::Close(self.member));
        let idle = async {
            loop {
                let mut idle = pin!(self.idle.notified());
                idle.as_mut().enable();
                if self.driver.look(|state| state.is_idle(self.member)) {
                    break;
                }
                idle.await;
            }
        };
        tokio::select! {
            () = idle => {}
            // Nothing waits for the rest any more, and it would keep the connections open.
            () = self.clock.reach(limit) => self.apply(Event::Abandon(self.member)),
        }
    }

    /// Frees a key, or ends the grant with the epoch `only` alone, in the store and in this process.
    pub(super) async fn force_release(self: &Arc<Self>, key: &LockKey, only: Option<u64>) -> Result<Holders> {
        // A lease that is granted while this is under way must not be ended by it.
        let leases = self.driver.look(|state| state.leases(key, only));
        let released = self.bounded_for_operators("force-release", self.backend.force_release(key, only)).await;
        let released = released.map_err(|error| error.within("force-release", self.name(), Some(key)))?;
        let by = self.defaults.label_text();
        released.holders.iter().for_each(|holder| self.driver.observer.forced(key, holder, by));
        // A grant that the store does not have any more is found gone by its next renewal.
        if only.is_none() || !released.holders.is_empty() {
            self.apply(Event::ForceReleased { key: key.clone(), leases });
        }
        Ok(released)
    }

    pub(super) fn apply(self: &Arc<Self>, event: Event) {
        self.driver.with(self, |state, at| state.apply(at, event));
    }
}

/// The answer, if it comes within the limit.
pub(super) async fn within<T>(limit: Duration, call: impl Future<Output = T>) -> Option<T> {
    if has_timers() { tokio::time::timeout(limit, call).await.ok() } else { Some(call.await) }
}

/// Whether the runtime of this task has timers. Asked once for each runtime that a thread is on: tokio says it by a panic alone.
fn has_timers() -> bool {
    thread_local! {
        static KNOWN: Cell<Option<(runtime::Id, bool)>> = const { Cell::new(None) };
    }
    let Ok(handle) = Handle::try_current() else { return false };
    match KNOWN.get() {
        Some((runtime, has)) if runtime == handle.id() => has,
        _ => {
            let has = catch_unwind(|| drop(tokio::time::sleep(Duration::ZERO))).is_ok();
            KNOWN.set(Some((handle.id(), has)));
            has
        }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.driver.remove(self.member);
    }
}
