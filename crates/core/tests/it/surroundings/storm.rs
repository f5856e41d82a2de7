//! Everything at once: callers of several engines and runtimes that give up, read, write, drop on other threads, and stores
//! that are slow or lose answers. Never two who exclude each other, never a smaller token, and everybody ends.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::time::Duration;

use futures::future::{BoxFuture, join_all};
use leasehold_core::{
    Engine, EngineOptions, ErrorKind, FencingToken, Guard, GuardMode, LocalHandoff, LockKey, LockOptions, LockerExt,
    RwLockerExt, Wait,
};
use leasehold_testkit::{Fault, FaultyMemory, Op, test};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use crate::surroundings::{PATIENCE, live, soon, store};

const TASKS: u64 = 48;
const ROUNDS: usize = 40;
const KEYS: usize = 4;
/// Who is in, and the newest token.
#[derive(Default)]
struct Watched {
    inside: AtomicI64,
    newest: AtomicU64,
}

impl Watched {
    /// Somebody came in.
    fn enters(&self, weight: i64, token: Option<FencingToken>, is_held: impl Fn() -> bool) {
        let beside = self.inside.fetch_add(weight, Ordering::SeqCst);
        let excluded = if weight == WRITER { beside != 0 } else { beside >= WRITER };
        assert!(!excluded || !is_held(), "{weight} beside {beside}");
        if weight == WRITER {
            let token = token.unwrap().get();
            let before = self.newest.fetch_max(token, Ordering::SeqCst);
            assert!(before < token, "{token} after {before}");
        }
    }
}

/// What a writer counts for; a reader counts one.
const WRITER: i64 = 1000;

/// What an attempt comes to, unless its caller gives up after so many polls.
async fn polled<T>(mut attempt: BoxFuture<'_, T>, most: Option<usize>) -> Option<T> {
    let mut polls = 0;
    std::future::poll_fn(|context| {
        if most.is_some_and(|most| polls >= most) {
            return Poll::Ready(None);
        }
        polls += 1;
        let polled = attempt.as_mut().poll(context).map(Some);
        if polled.is_pending() && most.is_some() {
            context.waker().wake_by_ref();
        }
        polled
    })
    .await
}

/// Holds the key for a moment, and ends the guard in one of several ways.
async fn holds<M: GuardMode>(guard: Guard<M>, weight: i64, watched: &Watched, random: &mut StdRng) {
    watched.enters(weight, guard.fencing_token(), || guard.is_held());
    match random.random_range(0..4) {
        0 => tokio::task::yield_now().await,
        1 => tokio::time::sleep(Duration::from_micros(random.random_range(0..3000))).await,
        _ => {}
    }
    watched.inside.fetch_sub(weight, Ordering::SeqCst);
    match random.random_range(0..4) {
        0 => drop(guard),
        1 => drop(std::thread::spawn(move || drop(guard))),
        // Begun, and given up.
        2 => drop(polled(Box::pin(guard.release()), Some(1)).await),
        _ => drop(guard.release().await),
    }
}

fn options(random: &mut StdRng) -> LockOptions {
    let options = LockOptions::new().ttl(PATIENCE * 2);
    match random.random_range(0..6) {
        0 => options.wait(Wait::UpTo(Duration::from_millis(random.random_range(0..20)))),
        1 => options.wait(Wait::Never),
        2 => options.label("of another kind"),
        _ => options,
    }
}

async fn task(locks: Engine<FaultyMemory>, all: Arc<[Watched; KEYS]>, readers: bool, mut random: StdRng) {
    for _ in 0..ROUNDS {
        let number = random.random_range(0..KEYS);
        let (key, options) = (key_of(number), options(&mut random));
        let gives_up = random.random_bool(0.4).then(|| random.random_range(0..6));
        if readers && random.random_bool(0.5) {
            if let Some(Ok(Some(guard))) = polled(Box::pin(locks.acquire_read(&key, &options)), gives_up).await {
                holds(guard, 1, &all[number], &mut random).await;
            }
        } else if let Some(Ok(Some(guard))) = polled(Box::pin(locks.acquire(&key, &options)), gives_up).await {
            holds(guard, WRITER, &all[number], &mut random).await;
        }
    }
}

fn key_of(number: usize) -> LockKey {
    LockKey::new(format!("k{number}")).unwrap()
}

fn storms(store: &FaultyMemory, local_handoff: LocalHandoff, readers: bool) {
    let runtimes = [live(), live()];
    let engines: Vec<_> =
        (0..3).map(|_| Engine::with(store.clone(), EngineOptions::new().local_handoff(local_handoff))).collect();
    let all: Arc<[Watched; KEYS]> = Arc::default();
    let tasks = (0..TASKS).zip(engines.iter().cycle()).zip(runtimes.iter().cycle());
    let tasks: Vec<_> = tasks
        .map(|((seed, locks), runtime)| {
            runtime.spawn(task(locks.clone(), Arc::clone(&all), readers, StdRng::seed_from_u64(seed)))
        })
        .collect();
    runtimes[0].block_on(async {
        for task in soon("somebody waits for ever", join_all(tasks)).await {
            task.unwrap();
        }
        for number in 0..KEYS {
            drop(soon("a key stays", engines[0].acquire(&key_of(number), &LockOptions::new())).await.unwrap().unwrap());
        }
    });
}

const SLOW: Fault = Fault::Slow(Duration::from_millis(1));

#[test]
fn callers_of_three_engines_on_two_runtimes() {
    storms(&store(), LocalHandoff::new(), false);
}

#[test]
fn readers_among_them() {
    storms(&store(), LocalHandoff::new(), true);
}

#[test]
fn readers_and_writers_on_a_store_that_is_slow() {
    let store = store();
    store.faults.always(Op::TryAcquire, SLOW);
    store.faults.always(Op::Release, SLOW);
    storms(&store, LocalHandoff::new(), true);
}

#[test]
fn nothing_passes_inside_the_process_and_nobody_is_notified() {
    let store = store().deaf();
    store.faults.always(Op::TryAcquire, SLOW);
    storms(&store, LocalHandoff::off(), false);
}

#[test]
fn a_store_that_refuses_and_loses_answers() {
    let store = store();
    let random = Mutex::new(StdRng::seed_from_u64(1));
    store.faults.choose(move |op| match random.lock().unwrap().random_range(0..10) {
        _ if !matches!(op, Op::TryAcquire | Op::Release) => Vec::new(),
        0 => vec![Fault::LoseReply],
        1 => vec![Fault::Refuse(ErrorKind::Unavailable)],
        2 => vec![SLOW],
        _ => Vec::new(),
    });
    storms(&store, LocalHandoff::new(), false);
}
