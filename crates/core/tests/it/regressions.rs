//! What once was broken, beside what the suite covers; what still is stands in `src/conformance/expected-failures.txt`.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use leasehold_core::{
    Attempt, Backend, Claim, Clock, Engine, EngineOptions, LockKey, LockOptions, Locker, LockerExt, Memory,
    MemoryBackend, Mode, RwLocker, Wait,
};
use leasehold_testkit::{Fault, Op, faulty_memory, test};
use metrics::{Counter, Gauge, Histogram, HistogramFn, Key, KeyName, Metadata, Recorder, SharedString, Unit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Subscriber};

const LEASE: Duration = Duration::from_secs(30);

#[test]
async fn with_lock_tells_a_loss_in_the_last_poll_of_the_work() {
    let clock = Clock::system();
    let locks = Memory::with_clock(clock.clone());
    // As when the process is stopped in the middle of its last step.
    let done = locks.with_lock("k", |_| async move { clock.advance(LEASE * 2) }).await;
    assert!(done.is_err(), "the work ended under a lost lock, and that was told as success");
}

#[test(paused)]
async fn a_panic_in_one_renewal_does_not_end_renewal() {
    let clock = Clock::tokio();
    let store = faulty_memory(&clock);
    let locks = Engine::with(store.clone(), EngineOptions::new().clock(clock));
    let guard = locks.lock("k").await.unwrap();
    store.faults.next(Op::Renew, Fault::Panic, 1);
    tokio::time::sleep(LEASE * 2).await;
    assert_eq!(store.faults.left(Op::Renew), 0, "no renewal was asked for");
    assert!(guard.is_held(), "one renewal panicked, and none followed: {:?}", guard.loss());
}

#[test(paused)]
async fn a_listener_that_never_comes_does_not_keep_a_waiter() {
    let clock = Clock::tokio();
    let store = faulty_memory(&clock);
    store.faults.always(Op::Subscribe, Fault::Hang);
    let engine = || Engine::with(store.clone(), EngineOptions::new().clock(clock.clone()));
    let (ours, theirs) = (engine(), engine());
    let guard = theirs.lock("k").await.unwrap();
    let waiting = tokio::spawn({
        let ours = ours.clone();
        async move { ours.lock_for("k", LEASE * 100).await }
    });
    tokio::time::sleep(LEASE / 2).await;
    guard.release().await.unwrap();
    let served = tokio::time::timeout(LEASE, waiting).await;
    assert!(served.is_ok(), "it still waits for its ear, and polls no more");
}

#[test(paused)]
async fn a_store_in_memory_forgets_what_expired() {
    let clock = Clock::tokio();
    let store = MemoryBackend::new(clock.clone());
    let claim = Claim::new(&LockKey::new("left-to-its-lease").unwrap(), Mode::Exclusive, LEASE);
    store.try_acquire(&claim).await.unwrap();
    clock.advance(LEASE * 100);
    store.try_acquire(&Claim::new(&LockKey::new("another").unwrap(), Mode::Exclusive, LEASE)).await.unwrap();
    assert!(!format!("{store:?}").contains("left-to-its-lease"), "the store grows with every key that expires");
}

#[test(paused)]
async fn a_lease_in_memory_ends_with_its_ttl_and_not_when_the_store_tidies_up() {
    let clock = Clock::tokio();
    let store = MemoryBackend::new(clock.clone());
    let claim = || Claim::new(&LockKey::new("k").unwrap(), Mode::Exclusive, LEASE / 1000);
    let (first, second) = (claim(), claim());
    assert!(matches!(store.try_acquire(&first).await.unwrap(), Attempt::Granted { .. }));
    clock.advance(LEASE / 1000);
    let answer = store.try_acquire(&second).await.unwrap();
    assert!(matches!(answer, Attempt::Granted { .. }), "the lease is over, and the key is {answer:?}");
}

#[test]
async fn a_store_that_forgot_everything_goes_on_above_what_it_gave() {
    let clock = Clock::system();
    let (before, begun) = (MemoryBackend::new(clock.clone()), clock.now());
    let key = LockKey::new("k").unwrap();
    let mut newest = None;
    while clock.now().since(begun) < Duration::from_millis(500) {
        let claim = Claim::new(&key, Mode::Exclusive, LEASE);
        if let Attempt::Granted { epoch } = before.try_acquire(&claim).await.unwrap() {
            newest = epoch;
            before.release(&claim.grant(epoch)).await.unwrap();
        }
    }
    // Nothing is lost and set up again within a sixteenth of a millisecond.
    tokio::time::sleep(Duration::from_millis(1)).await;
    let after = MemoryBackend::new(Clock::system());
    let first = after.try_acquire(&Claim::new(&key, Mode::Exclusive, LEASE)).await.unwrap();
    let Attempt::Granted { epoch: first } = first else { panic!("an empty store said {first:?}") };
    assert!(first > newest, "{first:?} after {newest:?}");
}

#[test(paused)]
async fn a_try_takes_a_free_key_however_often_it_was_granted_before() {
    // Its clock stands still, so that the store may grant the key a few times only and then has to be asked again.
    let locks = Memory::with_clock(Clock::tokio());
    for _ in 0..100 {
        let guard = locks.try_lock("k").await.unwrap().expect("nobody holds the key");
        guard.release().await.unwrap();
    }
}

#[test]
async fn a_locker_in_a_box_is_a_locker() {
    async fn takes(locks: impl Locker) {
        assert!(locks.try_lock("k").await.unwrap().is_some());
    }
    takes(Box::new(Memory::new()) as Box<dyn Locker>).await;
    takes(Box::new(Memory::new()) as Box<dyn RwLocker>).await;
}

/// Counts what is recorded of how long guards were held, and looks for the token in spans.
#[derive(Default)]
struct Witness {
    held: AtomicUsize,
    has_token: AtomicBool,
}

#[derive(Clone)]
struct Seen(Arc<Witness>);

impl HistogramFn for Witness {
    fn record(&self, _: f64) {
        self.held.fetch_add(1, Ordering::SeqCst);
    }
}

impl Recorder for Seen {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn register_counter(&self, _: &Key, _: &Metadata<'_>) -> Counter {
        Counter::noop()
    }

    fn register_gauge(&self, _: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::noop()
    }

    fn register_histogram(&self, key: &Key, _: &Metadata<'_>) -> Histogram {
        if key.name() == "leasehold_hold_seconds" {
            Histogram::from_arc(Arc::clone(&self.0))
        } else {
            Histogram::noop()
        }
    }
}

impl Subscriber for Seen {
    fn enabled(&self, _: &tracing::Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        if span.metadata().name() == "acquire" && span.metadata().fields().field("token").is_some() {
            self.0.has_token.store(true, Ordering::SeqCst);
        }
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn event(&self, _: &Event<'_>) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

fn block_on<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(work)
}

#[test]
fn the_time_of_holding_is_that_of_each_guard() {
    let seen = Seen(Arc::default());
    metrics::with_local_recorder(&seen, || {
        block_on(async {
            let locks = Memory::new();
            let key = LockKey::new("k").unwrap();
            let options = LockOptions::new().wait(Wait::UpTo(LEASE));
            let first = locks.lock("k").await.unwrap();
            let next = locks.acquire(&key, &options);
            // The second waits already, so that it comes by hand-off from the first.
            let (next, released) = futures::join!(next, async { first.release().await });
            released.unwrap();
            next.unwrap().unwrap().release().await.unwrap();
        });
    });
    assert_eq!(seen.0.held.load(Ordering::SeqCst), 2);
}

#[test]
fn the_span_of_an_acquire_has_a_place_for_the_token() {
    let seen = Seen(Arc::default());
    tracing::subscriber::with_default(seen.clone(), || {
        block_on(async { Memory::new().lock("k").await.unwrap().release().await }).unwrap();
    });
    assert!(seen.0.has_token.load(Ordering::SeqCst));
}
