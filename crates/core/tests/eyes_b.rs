#![allow(clippy::all, clippy::unwrap_used, clippy::disallowed_methods, warnings)]
#[path = "eyes/scripted.rs"]
mod scripted;
use leasehold_core::*;
use scripted::*;
use std::future::Future;
use std::sync::atomic::*;
use std::sync::{Arc, Mutex};
use std::task::*;
use std::time::{Duration, Instant};

fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}
fn cur() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}
fn multi() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
}

/// C5
#[test]
fn lost_that_straddles_the_deadline() {
    let rt = multi();
    let clock = Clock::system();
    let locks = Memory::with_clock(clock.clone());
    let mut stuck = 0;
    let waker = futures::task::noop_waker();
    let started = Instant::now();
    let mut rounds = 0;
    let go = Arc::new(AtomicU64::new(0));
    let done = Arc::new(AtomicU64::new(0));
    let (g2, d2, c2) = (go.clone(), done.clone(), clock.clone());
    std::thread::spawn(move || {
        let mut n = 0;
        loop {
            n += 1;
            while g2.load(Ordering::Acquire) < n {
                std::hint::spin_loop()
            }
            for _ in 0..(n * 7 % 400) {
                std::hint::spin_loop()
            }
            c2.advance(Duration::from_secs(40));
            d2.store(n, Ordering::Release);
        }
    });
    while started.elapsed() < Duration::from_secs(15) && stuck < 3 {
        rounds += 1;
        let guard = rt.block_on(locks.acquire(&key("k"), &LockOptions::new().renew(false))).unwrap().unwrap();
        let _enter = rt.enter();
        let mut cx = Context::from_waker(&waker);
        let mut kept = Vec::new();
        go.store(rounds, Ordering::Release);
        loop {
            let mut f = Box::pin(guard.lost());
            match f.as_mut().poll(&mut cx) {
                Poll::Ready(_) => break,
                Poll::Pending => kept.push(f),
            }
            if done.load(Ordering::Acquire) >= rounds {
                break;
            }
        }
        while done.load(Ordering::Acquire) < rounds {}
        assert!(guard.loss().is_some());
        let n = kept.len();
        for mut f in kept {
            if f.as_mut().poll(&mut cx).is_pending() {
                drop(_enter);
                let t = rt.block_on(async { tokio::time::timeout(ms(1500), f).await });
                if t.is_err() {
                    stuck += 1;
                    println!("round {rounds}: one of {n} lost() did not resolve in 1.5 s; loss() = {:?}", guard.loss());
                }
                break;
            }
        }
    }
    println!("{rounds} rounds, stuck {stuck}");
    assert_eq!(stuck, 0);
}

#[test]
fn a_runtime_that_rests_after_its_release_stalls_waiters_of_another() {
    let mut s = Scripted::new();
    s.deaf = true;
    let a = cur();
    let b = multi();
    let e = s.engine();
    s.set(|x| x.claim = Does::Slow(ms(5)));
    let guard = a.block_on(e.lock("k")).unwrap();
    let ws: Vec<_> = (0..2)
        .map(|i| {
            let e = e.clone();
            b.spawn(async move {
                let g = e.lock("k").await.unwrap();
                println!("{i} granted");
                g.release().await
            })
        })
        .collect();
    std::thread::sleep(ms(100));
    a.block_on(guard.release()).unwrap();
    let t = Instant::now();
    let ok = b.block_on(async { tokio::time::timeout(ms(8000), futures::future::join_all(ws)).await.is_ok() });
    println!("after {:?}: {ok}", t.elapsed());
    if !ok {
        println!("store: {:?}", b.block_on(e.inspect(&key("k"))));
    }
    std::mem::forget(a);
    std::mem::forget(b);
    assert!(ok, "the waiters of the live runtime were not served in 8 s on a free key");
}

#[test]
fn held_is_told_as_failure_after_an_answer_was_lost() {
    let mut s = Scripted::new();
    s.queues = true;
    let r = within("failed", ms(8000), move || {
        multi().block_on(async {
            let e = s.engine();
            s.set(|x| x.claims.push_back(Does::LostAnswer));
            let guard = e.lock("k").await.unwrap();
            let e2 = e.clone();
            let waiter = tokio::spawn(async move { e2.lock("k").await });
            tokio::time::sleep(ms(50)).await;
            let t = tokio::time::timeout(ms(1000), e.try_lock("k")).await;
            println!("try: {t:?}");
            let t2 =
                tokio::time::timeout(ms(3000), e.acquire(&key("k"), &LockOptions::new().wait(Wait::UpTo(ms(100)))))
                    .await;
            println!("lock_for: {t2:?}");
            assert!(matches!(t, Ok(Ok(None))) && matches!(t2, Ok(Ok(None))));
            drop(guard);
            let _ = waiter.await;
        })
    });
    assert!(r.is_some());
}

struct W(Mutex<Option<LockGuard>>);
impl Wake for W {
    fn wake(self: Arc<Self>) {}
}

/// A waker that owns the guard which the caller waits for.
#[test]
fn a_guard_in_a_waker_replaced() {
    let rt = multi();
    let locks = Memory::new();
    let l2 = locks.clone();
    let guard = rt.block_on(locks.lock("k")).unwrap();
    let h = rt.handle().clone();
    let r = within("waker replaced", ms(3000), move || {
        let _e = h.enter();
        let k = key("k");
        let o = LockOptions::new();
        let mut f = l2.acquire(&k, &o);
        let w1: Waker = Arc::new(W(Mutex::new(Some(guard)))).into();
        assert!(f.as_mut().poll(&mut Context::from_waker(&w1)).is_pending());
        drop(w1);
        let w2 = futures::task::noop_waker();
        let _ = f.as_mut().poll(&mut Context::from_waker(&w2));
    });
    std::mem::forget(rt);
    assert!(r.is_some(), "deadlock");
}

/// The last handle of a waker is dropped with a claim that nobody asks for any more.
#[test]
fn a_guard_in_a_waker_of_a_caller_that_is_gone() {
    let rt = multi();
    let s = Scripted::new();
    let e = s.engine();
    let guard = rt.block_on(e.lock("other")).unwrap();
    s.set(|x| x.claim = Does::Slow(ms(100)));
    let e2 = e.clone();
    let h = rt.handle().clone();
    let r = within("waker gone", ms(4000), move || {
        {
            let _e = h.enter();
            let k = key("k");
            let o = LockOptions::new();
            let mut f = e2.acquire(&k, &o);
            let w1: Waker = Arc::new(W(Mutex::new(Some(guard)))).into();
            assert!(f.as_mut().poll(&mut Context::from_waker(&w1)).is_pending());
            drop(w1);
            drop(f);
        }
        std::thread::sleep(ms(300));
        let r = h.block_on(async { e2.try_lock("third").await });
        println!("{:?}", r.map(|g| g.is_some()));
    });
    std::mem::forget(rt);
    assert!(r.is_some(), "deadlock");
}

/// A guard dropped in a waker that is woken, in a tracing subscriber and in a recorder.
#[test]
fn a_guard_dropped_in_wake() {
    struct D(Mutex<Option<LockGuard>>);
    impl Wake for D {
        fn wake(self: Arc<Self>) {
            drop(self.0.lock().unwrap().take())
        }
    }
    let rt = multi();
    let locks = Memory::new();
    let l2 = locks.clone();
    let guard = rt.block_on(locks.lock("k")).unwrap();
    let other = rt.block_on(locks.lock("j")).unwrap();
    let h = rt.handle().clone();
    let r = within("wake", ms(3000), move || {
        let _e = h.enter();
        let k = key("k");
        let o = LockOptions::new();
        let mut f = l2.acquire(&k, &o);
        let w1: Waker = Arc::new(D(Mutex::new(Some(other)))).into();
        assert!(f.as_mut().poll(&mut Context::from_waker(&w1)).is_pending());
        drop(guard);
        std::thread::sleep(ms(50));
        assert!(matches!(f.as_mut().poll(&mut Context::from_waker(&w1)), Poll::Ready(Ok(Some(_)))));
    });
    assert!(r.is_some(), "deadlock");
    assert!(rt.block_on(async { locks.lock_for("j", ms(1000)).await }).is_ok());
}

#[test]
fn a_guard_dropped_in_a_subscriber() {
    struct Sub(Mutex<Vec<LockGuard>>);
    impl tracing::Subscriber for Sub {
        fn enabled(&self, _: &tracing::Metadata<'_>) -> bool {
            true
        }
        fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
            self.it();
            tracing::span::Id::from_u64(1)
        }
        fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}
        fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}
        fn event(&self, e: &tracing::Event<'_>) {
            self.it()
        }
        fn enter(&self, _: &tracing::span::Id) {
            self.it()
        }
        fn exit(&self, _: &tracing::span::Id) {
            self.it()
        }
    }
    impl Sub {
        fn it(&self) {
            let g = self.0.lock().unwrap().pop();
            drop(g);
        }
    }
    let r = within("subscriber", ms(10000), || {
        let rt = cur();
        let locks = Memory::new();
        let guards: Vec<_> = rt.block_on(async {
            let mut v = vec![];
            for i in 0..50 {
                v.push(locks.lock(format!("g{i}")).await.unwrap())
            }
            v
        });
        let sub = tracing::Dispatch::new(Sub(Mutex::new(guards)));
        let _d = tracing::dispatcher::set_default(&sub);
        rt.block_on(async {
            let g = locks.lock("k").await.unwrap();
            let t = locks.try_lock("k").await;
            let l2 = locks.clone();
            let w = tokio::spawn(async move { l2.lock("k").await });
            tokio::time::sleep(ms(30)).await;
            g.release().await.unwrap();
            let g = w.await.unwrap().unwrap();
            locks.force_release(&key("k")).await.unwrap();
            println!("{:?}", g.loss());
        });
    });
    assert!(r.is_some());
}

/// C21: a guard in a thread local, dropped when its thread ends, with somebody waiting.
#[test]
fn a_guard_in_a_thread_local() {
    thread_local! { static G: std::cell::RefCell<Option<LockGuard>> = const { std::cell::RefCell::new(None) }; }
    let rt = multi();
    let locks = Memory::new();
    let l2 = locks.clone();
    let h = rt.handle().clone();
    std::thread::spawn(move || {
        G.with(|g| {
            g.borrow_mut().take();
        }); // registers the destructor first
        let _e = h.enter();
        // something of this thread uses the random generator
        let other = l2.contender();
        let held = h.block_on(l2.lock("x")).unwrap();
        let _ = h.block_on(async { tokio::time::timeout(ms(30), other.lock("x")).await.is_ok() });
        let _ = held;
        let guard = h.block_on(l2.lock("k")).unwrap();
        let l3 = l2.clone();
        for _ in 0..2 {
            let l3 = l2.clone();
            h.spawn(async move {
                let g = l3.lock("k").await.unwrap();
                g.release().await
            });
        }
        std::thread::sleep(ms(50));
        drop(_e);
        G.with(|g| *g.borrow_mut() = Some(guard));
    })
    .join()
    .unwrap();
    assert!(rt.block_on(async { locks.lock_for("k", ms(2000)).await }).is_ok());
}

/// A backend whose step calls the locker.
#[test]
fn many_readers_without_hand_over() {
    for n in [250usize, 500, 1000] {
        let s = Scripted::new();
        let rt = multi();
        let e = s.engine_off();
        let t = rt.block_on(async {
            let w = e.acquire(&key("k"), &LockOptions::new()).await.unwrap().unwrap();
            let hs: Vec<_> = (0..n)
                .map(|_| {
                    let e = e.clone();
                    tokio::spawn(async move {
                        let g = e.acquire_read(&key("k"), &LockOptions::new()).await.unwrap().unwrap();
                        g.release().await.unwrap();
                    })
                })
                .collect();
            tokio::time::sleep(ms(300)).await;
            let t = Instant::now();
            w.release().await.unwrap();
            for h in hs {
                h.await.unwrap()
            }
            t.elapsed()
        });
        println!("readers without hand-over: {n} in {t:?}");
    }
}

/// Engines on one line of waiters come and go while many keys are held.
#[test]
fn engines_come_and_go_beside_many_keys() {
    let s = Scripted::new();
    let rt = multi();
    let waiters = Waiters::new();
    let mk = || Engine::with(s.clone(), Settings::new().waiters(&waiters));
    let e = mk();
    for n in [0usize, 2000, 20000] {
        let held: Vec<_> = rt.block_on(async {
            let mut v = vec![];
            for i in 0..n {
                v.push(e.lock(format!("k{i}")).await.unwrap())
            }
            v
        });
        let t = Instant::now();
        for _ in 0..200 {
            drop(mk())
        }
        println!("{n} keys held: {:?} for each engine that comes and goes", t.elapsed() / 200);
        drop(held);
        std::thread::sleep(ms(500));
    }
}
