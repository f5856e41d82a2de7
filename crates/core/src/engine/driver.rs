//! The driver: applies events to the state machine under one lock, and carries its actions out outside of that lock.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Waker};

use futures::FutureExt;
use futures::future::BoxFuture;
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::sync::Notify;
use tokio::task::JoinHandle;

use super::caller::{Caller, Spawn};
use super::cell::Cell;
use super::observe::Observer;
use super::random::SystemRandom;
use super::state::{Action, Actions, Applying, End, Event, Member, Outcome, Request, RequestId, State};
use crate::Clock;
use crate::clock::Moment;

/// What the driver needs of an engine.
pub(super) trait Participant: Send + Sync + 'static {
    fn member(&self) -> Member;
    /// The future that carries a request out and feeds its answer back. `by` is told the answer, too.
    fn request(self: &Arc<Self>, request: Request, by: Option<Caller>) -> BoxFuture<'static, ()>;
    /// Whether the future of a release completes when it is polled once.
    fn releases_in_place(&self) -> bool;
    /// A runtime that is always driven.
    fn home(&self) -> Option<&Handle>;
    /// Called when no request of the engine is under way any more.
    fn idle(&self);
}

/// Applies events to the state machine, and carries out the actions that come out. Contains no rule of the protocol.
///
/// Nothing is awaited under its lock. A request stays on one runtime, because timers and connections end with theirs: on the home
/// of the engine, else on the runtime of the task that caused it, else on another that has not ended. A caller polls its request
/// itself only where that is on its own runtime.
pub(super) struct Driver<E> {
    pub(super) observer: Observer,
    locked: Mutex<Locked<E>>,
    timing: Arc<Timing>,
}

struct Locked<E> {
    state: State<Caller, Cell>,
    engines: HashMap<Member, Weak<E>>,
    /// One timer task for each runtime with callers, so that leases are renewed as long as any of these runtimes is driven.
    timers: Vec<(Handle, JoinHandle<()>)>,
    /// Engines without handles and guards that still have something to release.
    kept: HashMap<Member, Arc<E>>,
    /// The source of owner ids and jitter. It is not thread-local, because a thread may drop its last guard while it ends.
    random: SystemRandom,
    /// For each subscription, what ends it.
    subscriptions: HashMap<RequestId, Arc<Notify>>,
    /// The moment for which the timer tasks wait.
    armed: Moment,
}

struct Timing {
    clock: Clock,
    /// The next moment is earlier than the timer tasks know.
    changed: Notify,
}

impl<E: Participant> Driver<E> {
    pub(super) fn new(clock: Clock, backend: &'static str) -> Arc<Self> {
        let locked = Locked {
            state: State::new(),
            engines: HashMap::new(),
            timers: Vec::new(),
            kept: HashMap::new(),
            random: SystemRandom::new(),
            subscriptions: HashMap::new(),
            armed: Moment::NEVER,
        };
        let timing = Arc::new(Timing { clock, changed: Notify::new() });
        Arc::new(Self { observer: Observer::new(backend), locked: Mutex::new(locked), timing })
    }

    pub(super) fn add(&self, engine: impl FnOnce(&mut State<Caller, Cell>) -> Arc<E>) -> Arc<E> {
        let mut locked = self.lock();
        let engine = engine(&mut locked.state);
        locked.engines.insert(engine.member(), Arc::downgrade(&engine));
        engine
    }

    pub(super) fn remove(&self, member: Member) {
        let mut locked = self.lock();
        locked.engines.remove(&member);
        locked.state.remove(member);
    }

    /// Changes the state on behalf of `engine`, and carries out the actions.
    pub(super) fn with<T>(
        self: &Arc<Self>,
        engine: &Arc<E>,
        change: impl FnOnce(&mut State<Caller, Cell>, Applying<'_, Caller, Cell>) -> T,
    ) -> T {
        self.change(Some(engine), None, change)
    }

    /// Changes the state on behalf of a caller, and starts a timer task on the runtime of that caller if there is none.
    pub(super) fn with_caller<T>(
        self: &Arc<Self>,
        engine: &Arc<E>,
        caller: &Caller,
        change: impl FnOnce(&mut State<Caller, Cell>, Applying<'_, Caller, Cell>) -> T,
    ) -> T {
        self.change(Some(engine), caller.runtime(), change)
    }

    /// Applies everything that is due by now.
    pub(super) fn tick(self: &Arc<Self>) {
        self.change(None, None, |state, at| state.apply(at, Event::Tick));
    }

    /// Reads the state, or collects an offer: changes that produce no action.
    pub(super) fn look<T>(&self, at: impl FnOnce(&mut State<Caller, Cell>) -> T) -> T {
        at(&mut self.lock().state)
    }

    fn change<T>(
        self: &Arc<Self>,
        engine: Option<&Arc<E>>,
        runtime: Option<&Handle>,
        change: impl FnOnce(&mut State<Caller, Cell>, Applying<'_, Caller, Cell>) -> T,
    ) -> T {
        let mut actions = Actions::new();
        let mut others = BTreeMap::new();
        let mut guard = self.lock();
        let locked = &mut *guard;
        if let Some(runtime) = runtime {
            self.keep_time_on(runtime, locked);
        }
        let now = self.timing.clock.now();
        let result = change(&mut locked.state, Applying { now, random: &mut locked.random, out: &mut actions });
        actions.retain(|action| locked.apply_locked(action, now, engine, &mut others));
        let next = locked.state.next();
        let earlier = next < locked.armed;
        if earlier {
            locked.armed = next;
        }
        drop(guard);
        if earlier {
            self.timing.changed.notify_waiters();
        }
        for action in actions {
            let of = |member| engine.filter(|engine| engine.member() == member).or_else(|| others.get(&member));
            self.perform(action, of);
        }
        result
    }

    fn perform<'e>(self: &Arc<Self>, action: Action<Caller, Cell>, of: impl FnOnce(Member) -> Option<&'e Arc<E>>) {
        match action {
            Action::Send { member, request, by, alone } => {
                if let Some(engine) = of(member) {
                    self.send(engine, request, by.as_ref(), alone);
                }
            }
            Action::Detached(caller) => caller.detach(&**self),
            Action::Wake(caller, outcome) => caller.update(|state| {
                // Actions of two threads may be carried out in another order than they came out: a call hides no grant.
                if state.outcome.is_none() || !matches!(outcome, Outcome::Called) {
                    state.outcome = Some(outcome);
                }
            }),
            Action::Limit(cell, _) => cell.notify(),
            Action::End { cell, key, end, held_for } => {
                cell.notify();
                if let End::Lost(reason) = end {
                    self.observer.lost(&key, reason, held_for);
                }
            }
            Action::HandedOff => self.observer.handed_off(),
            Action::AttemptFailed(key, error) => self.observer.attempt_failed(&key, &error),
            Action::ReleaseFailed(key, error) => self.observer.release_failed(&key, &error),
            Action::Unsubscribe(request) => {
                if let Some(subscription) = self.lock().subscriptions.remove(&request) {
                    subscription.notify_one();
                }
            }
            Action::Idle(member) => {
                // Dropped outside of the lock.
                let kept = self.lock().kept.remove(&member);
                if let Some(engine) = of(member) {
                    engine.idle();
                }
                drop(kept);
            }
            Action::Keep(_) => {}
        }
    }

    fn send(self: &Arc<Self>, engine: &Arc<E>, request: Request, by: Option<&Caller>, alone: bool) {
        let gives = matches!(request, Request::Release(..) | Request::Downgrade(..));
        let in_place = gives && engine.releases_in_place();
        let waiting = by.filter(|_| !matches!(request, Request::Claim(..))).cloned();
        let mut request = engine.request(request, waiting);
        if in_place && request.poll_unpin(&mut Context::from_waker(Waker::noop())).is_ready() {
            return;
        }
        let own = by.and_then(Caller::runtime);
        let runtime = engine.home().or(own);
        match by {
            // Outside of a runtime most requests cannot be polled.
            Some(caller) if alone && own.is_some() && own.map(Handle::id) == runtime.map(Handle::id) => {
                caller.poll_itself(&**self, request);
            }
            _ => self.spawn(runtime, request),
        }
    }

    /// A runtime that has not ended. One with worker threads is preferred to one that runs only while a thread blocks on it.
    fn alive(&self) -> Option<Handle> {
        let locked = self.lock();
        let alive = locked.timers.iter().filter(|(_, task)| !task.is_finished());
        let driven = |handle: &&Handle| handle.runtime_flavor() == RuntimeFlavor::MultiThread;
        alive.map(|(handle, _)| handle).max_by_key(driven).cloned()
    }

    /// Starts a timer task on this runtime if it has none.
    fn keep_time_on(self: &Arc<Self>, runtime: &Handle, locked: &mut Locked<E>) {
        let id = runtime.id();
        if locked.timers.iter().any(|(known, task)| known.id() == id && !task.is_finished()) {
            return;
        }
        locked.timers.retain(|(_, task)| !task.is_finished());
        let task = runtime.spawn(keep_time(Arc::downgrade(self), Arc::clone(&self.timing)));
        locked.timers.push((runtime.clone(), task));
    }

    /// Registers a subscription, so that the state can end it.
    pub(super) fn subscribed(self: &Arc<Self>, request: RequestId) -> Subscription<E> {
        let over = Arc::clone(self.lock().subscriptions.entry(request).or_default());
        Subscription { driver: Arc::clone(self), request, over }
    }
}

impl<E> Driver<E> {
    fn lock(&self) -> MutexGuard<'_, Locked<E>> {
        self.locked.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<E: Participant> Locked<E> {
    /// The part of an action that has to be done under the lock. False if nothing is left to do afterwards.
    fn apply_locked(
        &mut self,
        action: &Action<Caller, Cell>,
        now: Moment,
        engine: Option<&Arc<E>>,
        others: &mut BTreeMap<Member, Arc<E>>,
    ) -> bool {
        match action {
            // In the order of the events: an older limit must not replace a newer one.
            Action::Limit(cell, limit) => return cell.set_limit(*limit),
            Action::End { cell, end, .. } => cell.set_end(*end, now),
            Action::Keep(member) => {
                let engine = self.engines.get(member).and_then(Weak::upgrade);
                self.kept.extend(engine.map(|engine| (*member, engine)));
            }
            Action::Send { member, .. } | Action::Idle(member)
                if engine.is_none_or(|engine| engine.member() != *member) =>
            {
                let other = self.engines.get(member).and_then(Weak::upgrade);
                others.extend(other.map(|other| (*member, other)));
            }
            _ => {}
        }
        true
    }
}

impl<E: Participant> Spawn for Driver<E> {
    /// Runs the future on this runtime, else on the current one, else on another that has not ended. Where that has ended, or
    /// there is none, the future is dropped, and answers by itself that its outcome is unknown.
    fn spawn(&self, runtime: Option<&Handle>, work: BoxFuture<'static, ()>) {
        let here = || Handle::try_current().ok().or_else(|| self.alive());
        if let Some(handle) = runtime.cloned().or_else(here) {
            handle.spawn(work);
        }
    }
}

impl<E> Drop for Driver<E> {
    fn drop(&mut self) {
        self.lock().timers.iter().for_each(|(_, task)| task.abort());
    }
}

/// The timer task: applies what is due, as long as the driver exists. It does no I/O, so that a store that hangs cannot make
/// it miss a deadline.
async fn keep_time<E: Participant>(driver: Weak<Driver<E>>, timing: Arc<Timing>) {
    loop {
        let mut changed = pin!(timing.changed.notified());
        changed.as_mut().enable();
        let next = {
            let Some(driver) = driver.upgrade() else { return };
            let mut locked = driver.lock();
            locked.armed = locked.state.next();
            locked.armed
        };
        tokio::select! {
            () = changed => {}
            () = timing.clock.reach(next) => {
                let Some(driver) = driver.upgrade() else { return };
                driver.tick();
            }
        }
    }
}

/// A subscription that is under way. It is removed from the driver when it is dropped, also by a runtime that ends.
pub(super) struct Subscription<E> {
    driver: Arc<Driver<E>>,
    request: RequestId,
    over: Arc<Notify>,
}

impl<E> Subscription<E> {
    /// Resolves when the state does not want the subscription any more.
    pub(super) async fn over(&self) {
        self.over.notified().await;
    }
}

impl<E> Drop for Subscription<E> {
    fn drop(&mut self) {
        self.driver.lock().subscriptions.remove(&self.request);
    }
}

impl<E> fmt::Debug for Driver<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Driver")
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use std::time::Duration;

    use crate::engine::Engine;
    use crate::{Clock, LockerExt, MemoryBackend};

    #[test]
    fn nothing_stays_of_a_subscription_whose_runtime_ends() {
        let runtime = || tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let store = MemoryBackend::new(Clock::system());
        let (ours, theirs) = (Engine::new(store.clone()), Engine::new(store));
        let _held = runtime().block_on(theirs.lock("k")).unwrap();
        let subscriptions = || ours.inner.driver.lock().subscriptions.len();
        for _ in 0..3 {
            let ends = runtime();
            let waiter = ours.clone();
            ends.spawn(async move { waiter.lock("k").await });
            let listens = async {
                while subscriptions() == 0 {
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
            };
            ends.block_on(async { tokio::time::timeout(Duration::from_secs(20), listens).await }).unwrap();
            drop(ends);
            assert_eq!(subscriptions(), 0);
        }
    }
}
