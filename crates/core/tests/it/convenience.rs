//! What `LockerExt` and the traits promise beyond the backend.

use leasehold_testkit::{Fault, Op, faulty_memory, test};
use std::any::Any;
use std::sync::Arc;
use std::time::Duration;

use leasehold_core::{
    Admin, Clock, ErrorKind, GuardHandle, LockKey, LockOptions, Locker, LockerExt, LossReason, Memory, Mode,
    ReleaseOutcome, RwLocker, RwLockerExt, Wait, default_label,
};

#[test]
async fn lock_for_tells_a_timeout_with_the_key() {
    let locks = Memory::new();
    let _held = locks.lock("k").await.unwrap();
    let error = locks.lock_for("k", Duration::from_millis(20)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TimedOut);
    let text = error.to_string();
    assert!(text.starts_with("acquire \"k\" on memory: held by another for the whole wait"), "{text}");
    assert!(text.contains("the holder's lease lasts for another "), "{text}");
    assert!(!error.is_transient());
}

#[test]
fn a_wrapping_locker_can_read_what_is_asked_for() {
    let options = LockOptions::new()
        .ttl(Duration::from_secs(1))
        .wait(Wait::Never)
        .renew(false)
        .max_hold(Duration::from_secs(2))
        .label("who")
        .reason("why");
    assert_eq!((options.lease(), options.patience()), (Duration::from_secs(1), Wait::Never));
    assert_eq!((options.renews(), options.hold_limit()), (false, Some(Duration::from_secs(2))));
    assert_eq!((options.label_text(), options.reason_text()), (Some("who"), Some("why")));
}

#[test(paused)]
async fn a_loss_is_told_to_every_handle_although_its_owner_drops_the_guard_on_it() {
    let clock = Clock::tokio();
    let locks = Memory::with_clock(clock.clone());
    let (tell, told) = tokio::sync::oneshot::channel();
    let work = tokio::spawn({
        let locks = locks.clone();
        async move {
            let handed = |guard: GuardHandle| async move {
                tell.send(guard).unwrap();
                std::future::pending::<()>().await;
            };
            locks.with_lock("k", handed).await
        }
    });
    let handle: GuardHandle = told.await.unwrap();
    let waiting = tokio::spawn(handle.lost());
    // The loss finds the owner first, which drops the guard on it.
    clock.advance(Duration::from_secs(31));
    assert_eq!(work.await.unwrap().unwrap_err().kind(), ErrorKind::Lost(LossReason::Expired));
    let soon = Duration::from_secs(20);
    let later = tokio::time::timeout(soon, handle.lost()).await;
    assert_eq!(later.expect("it is told for ever"), LossReason::Expired);
    assert_eq!(tokio::time::timeout(soon, waiting).await.expect("who waited is told").unwrap(), LossReason::Expired);
    assert_eq!((handle.loss(), handle.is_held()), (Some(LossReason::Expired), false));
}

#[test(paused)]
async fn a_guard_that_ended_otherwise_is_never_lost_and_one_that_is_dropped_past_its_limit_was() {
    let clock = Clock::tokio();
    let locks = Memory::with_clock(clock.clone());
    let mut handles = Vec::new();
    for end in ["drop", "release", "detach", "downgrade"] {
        let guard = locks.lock(end).await.unwrap();
        handles.push(guard.handle());
        match end {
            "drop" => drop(guard),
            "release" => drop(guard.release().await.unwrap()),
            "detach" => drop(guard.detach().unwrap()),
            _ => handles.push(guard.downgrade(&LockOptions::new()).await.unwrap().handle()),
        }
    }
    let late = locks.lock_with("late", &LockOptions::new().renew(false)).await.unwrap();
    let lost = late.handle();
    clock.advance(Duration::from_secs(31));
    drop(late);
    assert_eq!(lost.loss(), Some(LossReason::Expired));
    for handle in handles {
        assert_eq!((handle.loss(), handle.is_held()), (None, false), "{handle:?}");
        let told = tokio::time::timeout(Duration::from_secs(60), handle.lost()).await;
        assert!(told.is_err(), "{handle:?}");
    }
}

#[test]
async fn lock_all_takes_every_key_once_or_none() {
    let locks = Memory::new();
    let options = LockOptions::new().wait(Wait::UpTo(Duration::from_millis(20)));
    let guards = locks.lock_all(["c", "a", "b", "a"], &options).await.unwrap().unwrap();
    let keys: Vec<_> = guards.iter().map(|guard| guard.key().as_str()).collect();
    assert_eq!(keys, ["a", "b", "c"]);
    drop(guards);

    let contender = locks.contender();
    let in_the_way = contender.lock("b").await.unwrap();
    assert!(locks.lock_all(["a", "b", "c"], &options).await.unwrap().is_none());
    assert_eq!(locks.lock_all(["a", ""], &options).await.unwrap_err().kind(), ErrorKind::InvalidKey);
    for free in ["a", "c"] {
        assert!(contender.lock_for(free, Duration::from_secs(10)).await.is_ok(), "{free} was kept");
    }
    in_the_way.release().await.unwrap();
}

#[test]
async fn lock_all_hears_at_once_that_a_key_is_lost_while_another_is_waited_for() {
    let locks = Memory::new();
    let _in_the_way = locks.contender().lock("b").await.unwrap();
    let options = LockOptions::new().ttl(Duration::from_millis(200)).renew(false);
    let waiting = locks.lock_all(["a", "b"], &options);
    let error = tokio::time::timeout(Duration::from_secs(60), waiting).await.expect("it waits on").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Lost(LossReason::Expired));
}

#[test]
async fn work_under_a_lock_returns_when_the_store_has_the_key_back() {
    let store = faulty_memory(&Clock::system());
    store.faults.always(Op::Release, Fault::Slow(Duration::from_millis(100)));
    let (locks, others) = (store.engine(), store.engine());
    locks.with_lock("k", async |_| {}).await.unwrap();
    assert!(others.try_lock("k").await.unwrap().is_some(), "a program may end with that call");
    let cap = LockOptions::new().max_hold(Duration::from_millis(20));
    let lost = locks.with_lock_options("k", &cap, async |_| std::future::pending::<()>().await).await.unwrap_err();
    assert_eq!(lost.kind(), ErrorKind::Lost(LossReason::MaxHold));
    assert!(others.try_lock("k").await.unwrap().is_some(), "also where it was lost");
}

#[test]
fn without_a_runtime_that_has_timers_it_is_an_error_and_not_a_panic() {
    let locks = Memory::new();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let error = runtime.block_on(locks.lock("k")).unwrap_err();
    assert!(error.kind() == ErrorKind::Unsupported && error.to_string().contains("enable_time"), "{error}");
    assert_eq!(futures::executor::block_on(locks.lock("k")).unwrap_err().kind(), ErrorKind::Unsupported);
}

#[test]
async fn work_under_a_lock_can_ask_the_guard_and_the_options_count() {
    let locks = Memory::new();
    let options = LockOptions::new().ttl(Duration::from_secs(7)).reason("a count");
    let work = |guard: GuardHandle| async move {
        assert!(guard.is_held() && guard.loss().is_none() && guard.remaining() <= Duration::from_secs(7));
        guard
    };
    let guards = [
        locks.with_lock_options("k", &options, work).await.unwrap(),
        locks.with_read_options("k", &options, work).await.unwrap(),
        locks.with_lock("k", async |guard| guard).await.unwrap(),
        locks.with_write("k", async |guard| guard).await.unwrap(),
        locks.with_read("k", async |guard| guard).await.unwrap(),
    ];
    let modes = [Mode::Exclusive, Mode::Shared, Mode::Exclusive, Mode::Exclusive, Mode::Shared];
    for (guard, mode) in guards.iter().zip(modes) {
        assert!(!guard.is_held(), "the work is over");
        assert_eq!((guard.key().as_str(), guard.mode(), guard.loss()), ("k", mode, None));
    }
    assert!(guards.is_sorted_by_key(GuardHandle::fencing_token));

    let _held = locks.contender().lock("k").await.unwrap();
    let once = LockOptions::new().wait(Wait::Never);
    let error = locks.with_write_options("k", &once, work).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TimedOut);
    assert_eq!(locks.read_with("k", &once).await.unwrap_err().kind(), ErrorKind::TimedOut);
    assert!(locks.try_lock_or_busy("k").await.unwrap().unwrap_err().remaining.is_some());
    assert!(locks.try_read_or_busy("k").await.unwrap().unwrap_err().remaining.is_some());
}

async fn takes_turns(locks: impl Locker, key: &str) {
    let held: Box<dyn Any + Send + Sync> = Box::new(locks.lock(key).await.unwrap());
    assert!(locks.try_lock(key).await.unwrap().is_none());
    drop(held);
}

async fn shares(locks: impl RwLocker, key: &str) {
    let _readers = (locks.read(key).await.unwrap(), locks.read(key).await.unwrap());
    assert!(locks.try_write(key).await.unwrap().is_none());
}

async fn is_free(admin: impl Admin, key: &str) {
    assert!(admin.inspect(&LockKey::new(key).unwrap()).await.unwrap().holders.is_empty());
}

#[test]
async fn whatever_points_to_a_locker_is_one() {
    let memory = Memory::new();
    takes_turns(&memory, "k").await;
    takes_turns(&&memory, "k").await;
    takes_turns(Box::new(memory.clone()), "k").await;
    takes_turns(Arc::new(memory.clone()), "k").await;
    takes_turns(&Arc::new(memory.clone()), "k").await;
    takes_turns(&memory as &dyn Locker, "k").await;
    takes_turns(&memory as &dyn RwLocker, "k").await;
    takes_turns(&(Box::new(memory.clone()) as Box<dyn Locker>), "k").await;
    takes_turns(&(Arc::new(memory.clone()) as Arc<dyn Locker>), "k").await;
    shares(&memory, "k").await;
    shares(Box::new(memory.clone()), "k").await;
    shares(&memory as &dyn RwLocker, "k").await;
    shares(&(Box::new(memory.clone()) as Box<dyn RwLocker>), "k").await;
    shares(&(Arc::new(memory.clone()) as Arc<dyn RwLocker>), "k").await;
    is_free(&memory, "k").await;
    is_free(Box::new(memory.clone()), "k").await;
    is_free(&memory as &dyn Admin, "k").await;
    is_free(&(Box::new(memory.clone()) as Box<dyn Admin>), "k").await;
    is_free(&(Arc::new(memory.clone()) as Arc<dyn Admin>), "k").await;
}

async fn labels(locks: &(impl RwLocker + Admin), options: &LockOptions) -> Vec<Option<String>> {
    let (one, two) = (locks.read_with("k", options).await.unwrap(), locks.read_with("k", options).await.unwrap());
    let holders = locks.inspect(one.key()).await.unwrap().holders;
    drop((one, two));
    holders.into_iter().map(|holder| holder.label).collect()
}

#[test]
async fn a_grant_without_a_label_tells_which_process_has_it() {
    let locks = Memory::new();
    let own = default_label().to_string();
    assert_eq!(labels(&locks, &LockOptions::new()).await, vec![Some(own.clone()); 2]);
    assert_eq!(labels(&locks, &LockOptions::new().label("me")).await, vec![Some("me".to_owned()); 2]);
    assert_eq!(labels(&locks, &LockOptions::new().no_label()).await, [None, None]);
    let nameless = locks.clone().with_defaults(LockOptions::new().no_label());
    assert_eq!(labels(&nameless, &LockOptions::new()).await, [None, None]);
    assert_eq!(labels(&nameless, &LockOptions::new().label("me")).await, vec![Some("me".to_owned()); 2]);
    let reader = locks.lock("k").await.unwrap().downgrade(&LockOptions::new()).await.unwrap();
    assert_eq!(locks.inspect(reader.key()).await.unwrap().holders[0].label, Some(own));
}

#[test]
async fn the_defaults_of_a_locker_count_for_its_downgrades() {
    let (lease, open, key) = (Duration::from_secs(100), LockOptions::new(), LockKey::new("k").unwrap());
    let locks = Memory::new();
    let inner = locks.clone().with_defaults(LockOptions::new().ttl(lease * 5).label("billing").reason("month"));
    let named = LockerExt::with_defaults(inner, LockOptions::new().ttl(lease));
    let chosen = LockOptions::new().ttl(lease * 9).label("writer").reason("writing");
    let detached = named.lock("k").await.unwrap().detach().unwrap();
    let mut writer = named.attach(&detached, &chosen).await.unwrap().unwrap();
    for _ in 0..2 {
        let reader = writer.downgrade(&open).await.unwrap();
        assert!(lease / 2 < reader.remaining() && reader.remaining() <= lease, "{:?}", reader.remaining());
        let seen = locks.inspect(&key).await.unwrap().holders.remove(0);
        assert_eq!((seen.label.as_deref(), seen.reason.as_deref()), (Some("billing"), Some("month")));
        reader.release().await.unwrap();
        writer = named.lock_with("k", &chosen).await.unwrap();
    }
    let reader = writer.downgrade(&LockOptions::new().ttl(lease / 10).no_label().reason("year")).await.unwrap();
    assert!(reader.remaining() <= lease / 10);
    let seen = locks.inspect(&key).await.unwrap().holders.remove(0);
    assert_eq!((seen.label, seen.reason.as_deref()), (None, Some("year")), "what the request chose counts");
}

#[test]
async fn the_defaults_of_a_locker_count_for_what_a_request_leaves_open() {
    let (lease, wait) = (Duration::from_secs(7), Duration::from_millis(20));
    let locks = Memory::new();
    let (open, named) = (LockOptions::new(), LockOptions::new().ttl(lease).wait(Wait::UpTo(wait)).reason("billing"));
    let shared: Arc<dyn RwLocker> = Arc::new(locks.clone());
    let defaults = LockerExt::with_defaults(shared, named.clone());
    let guard = defaults.lock("k").await.unwrap();
    assert!(guard.remaining() <= lease);
    let seen = locks.inspect(guard.key()).await.unwrap();
    assert_eq!(seen.holders[0].reason.as_deref(), Some("billing"));
    for refused in [defaults.lock("k").await.err(), defaults.read("k").await.err()] {
        assert_eq!(refused.unwrap().kind(), ErrorKind::TimedOut);
    }
    drop(guard);
    let longer = defaults.lock_with("k", &LockOptions::new().ttl(lease * 10)).await.unwrap();
    assert!(longer.remaining() > lease * 8, "what the request chose counts");
    drop(longer);
    assert!(locks.lock_with("k", &open).await.unwrap().remaining() > lease * 4);
    let twice = LockerExt::with_defaults(locks.with_defaults(named), LockOptions::new().ttl(lease * 2));
    let guard = twice.lock("k").await.unwrap();
    assert!(guard.remaining() > lease, "the outer defaults come first");
    assert_eq!(twice.inspect(guard.key()).await.unwrap().holders[0].reason.as_deref(), Some("billing"));
    let refused = twice.lock_with("j", &LockOptions::new().ttl(Duration::ZERO)).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::InvalidOptions);
}

#[test]
async fn a_memory_store_fails_as_a_test_wants_it_to() {
    let locks = Memory::new();
    let theirs = locks.contender();
    let key = LockKey::new("k").unwrap();
    theirs.fail_next(2, ErrorKind::Backend);
    for _ in 0..2 {
        assert_eq!(locks.lock("k").await.unwrap_err().kind(), ErrorKind::Backend, "all contenders have one store");
    }
    locks.fail_next(7, ErrorKind::Unavailable);
    locks.fail_next(0, ErrorKind::Unavailable);
    let guard = locks.try_lock("k").await.unwrap().unwrap();
    locks.fail_next(1, ErrorKind::Unavailable);
    assert_eq!(guard.renew().await.unwrap_err().kind(), ErrorKind::Unavailable);
    assert!(guard.is_held());
    locks.fail_next(1, ErrorKind::Indeterminate);
    assert_eq!(guard.release().await.unwrap_err().kind(), ErrorKind::Indeterminate);
    assert!(locks.inspect(&key).await.unwrap().holders.is_empty(), "it was carried out");

    let guard = locks.lock("k").await.unwrap();
    theirs.forget(&key);
    assert!(guard.is_held() && theirs.try_lock("k").await.unwrap().is_some());
    assert_eq!(guard.release().await.unwrap(), ReleaseOutcome::AlreadyLost(LossReason::Stolen));
}

#[test(paused)]
async fn a_silent_memory_store_is_unreachable_until_it_speaks_again() {
    let locks = Memory::with_clock(Clock::tokio());
    let started = tokio::time::Instant::now();
    let short = LockOptions::new().ttl(Duration::from_secs(10));
    let (held, kept) = (locks.lock_with("held", &short).await.unwrap(), locks.lock("kept").await.unwrap());
    locks.silent_for(Duration::from_secs(20));
    let error = locks.try_lock("k").await.unwrap_err();
    assert_eq!((error.kind(), started.elapsed()), (ErrorKind::Indeterminate, Duration::from_secs(1)));
    assert_eq!(held.lost().await, LossReason::Unreachable);
    let waited = locks.lock("k").await.unwrap();
    assert!(started.elapsed() >= Duration::from_secs(20) && kept.is_held() && waited.is_held());
}
