//! Whatever a waker, or a subscriber, owns and does: none of that happens under a lock of the engine.

use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};

use futures::task::noop_waker;
use leasehold_core::{LockGuard, LockOptions, LockerExt, Memory};
use leasehold_testkit::{Fault, Op, test};
use tracing::span::{Attributes, Id, Record};
use tracing::{Dispatch, Event, Metadata, Subscriber};

use crate::surroundings::{MOMENT, ends, key, live, resting, soon, store};

/// A waker that owns a guard, and drops it when it is woken or dropped.
struct Owner(Mutex<Option<LockGuard>>);

impl Wake for Owner {
    fn wake(self: Arc<Self>) {
        drop(self.0.lock().unwrap().take());
    }
}

fn owner_of(guard: LockGuard) -> Waker {
    Arc::new(Owner(Mutex::new(Some(guard)))).into()
}

#[test]
fn a_caller_is_polled_with_a_waker_that_owned_the_guard_it_waits_for() {
    let (live, locks) = (live(), Memory::new());
    let guard = live.block_on(locks.lock("k")).unwrap();
    ends("a waker that is replaced blocks its thread", move || {
        let _entered = live.enter();
        let (key, options) = (key(), LockOptions::new());
        let mut waits = Box::pin(locks.acquire(&key, &options));
        assert!(waits.as_mut().poll(&mut Context::from_waker(&owner_of(guard))).is_pending());
        let _ = waits.as_mut().poll(&mut Context::from_waker(&noop_waker()));
        drop(waits);
    });
}

#[test]
fn the_last_handle_of_a_waker_that_owns_a_guard_may_be_the_engines() {
    let (live, store) = (live(), store());
    let locks = store.engine();
    let guard = live.block_on(locks.lock("another")).unwrap();
    store.faults.always(Op::TryAcquire, Fault::Slow(MOMENT));
    ends("the engine hangs with a waker of a caller that is gone", move || {
        let entered = live.enter();
        let (key, options) = (key(), LockOptions::new());
        let mut waits = Box::pin(locks.acquire(&key, &options));
        assert!(waits.as_mut().poll(&mut Context::from_waker(&owner_of(guard))).is_pending());
        drop(waits);
        drop(entered);
        live.block_on(async { tokio::time::sleep(MOMENT * 3).await });
        assert!(live.block_on(locks.try_lock("third")).unwrap().is_some());
    });
}

#[test]
fn a_guard_is_dropped_as_another_caller_is_woken() {
    let (live, locks) = (live(), Memory::new());
    let guard = live.block_on(locks.lock("k")).unwrap();
    let other = live.block_on(locks.lock("another")).unwrap();
    ends("a guard that is dropped by a waker blocks its thread", move || {
        let entered = live.enter();
        let (key, options) = (key(), LockOptions::new());
        let mut waits = Box::pin(locks.acquire(&key, &options));
        assert!(waits.as_mut().poll(&mut Context::from_waker(&owner_of(other))).is_pending());
        drop((guard, entered));
        let granted = live.block_on(soon("nobody is served", waits));
        assert!(matches!(granted, Ok(Some(_))), "{granted:?}");
        drop(live.block_on(soon("the guard was dropped, and its key stays", locks.lock("another"))).unwrap());
    });
}

/// Drops a guard for each thing that is traced.
struct Drops(Mutex<Vec<LockGuard>>);

impl Drops {
    fn one(&self) {
        let guard = self.0.lock().unwrap().pop();
        drop(guard);
    }
}

impl Subscriber for Drops {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }
    fn new_span(&self, _: &Attributes<'_>) -> Id {
        self.one();
        Id::from_u64(1)
    }
    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn event(&self, _: &Event<'_>) {
        self.one();
    }
    fn enter(&self, _: &Id) {
        self.one();
    }
    fn exit(&self, _: &Id) {
        self.one();
    }
}

#[test]
fn guards_are_dropped_by_a_subscriber_of_what_is_traced() {
    ends("a subscriber that drops guards blocks its thread", || {
        let (runtime, locks) = (resting(), Memory::new());
        let guards = (0..500).map(|number| runtime.block_on(locks.lock(format!("held/{number}"))).unwrap()).collect();
        let _traced = tracing::dispatcher::set_default(&Dispatch::new(Drops(Mutex::new(guards))));
        runtime.block_on(async {
            let guard = locks.lock("k").await.unwrap();
            assert!(locks.try_lock("k").await.unwrap().is_none());
            let (key, options) = (key(), LockOptions::new());
            let mut waits = Box::pin(locks.acquire(&key, &options));
            assert!(matches!(futures::poll!(&mut waits), Poll::Pending));
            guard.release().await.unwrap();
            assert!(waits.await.unwrap().is_some());
        });
    });
}
