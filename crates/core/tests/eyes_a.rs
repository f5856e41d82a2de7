#![allow(clippy::all, clippy::unwrap_used, clippy::disallowed_methods, warnings)]
#[path = "eyes/scripted.rs"]
mod scripted;
use leasehold_core::*;
use scripted::*;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::*;
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

/// C5: lost() that is begun as the deadline passes never resolves.
#[test]
fn lost_that_straddles_the_deadline() {
    let rt = multi();
    let locks = Memory::new();
    let mut stuck = 0;
    for round in 0..40 {
        let guard = rt
            .block_on(locks.acquire(&key(&format!("k{round}")), &LockOptions::new().ttl(ms(20)).renew(false)))
            .unwrap()
            .unwrap();
        let _enter = rt.enter();
        let mut kept = Vec::new();
        let waker = futures::task::noop_waker();
        let mut cx = Context::from_waker(&waker);
        while guard.remaining() > Duration::from_micros(30) {}
        for _ in 0..3000 {
            let mut f = Box::pin(guard.lost());
            match f.as_mut().poll(&mut cx) {
                Poll::Ready(_) => break,
                Poll::Pending => kept.push(f),
            }
        }
        std::thread::sleep(ms(30));
        assert!(guard.loss().is_some());
        let n = kept.len();
        let never = rt.block_on(async {
            let mut never = 0;
            for f in kept {
                if tokio::time::timeout(ms(50), f).await.is_err() {
                    never += 1
                }
            }
            never
        });
        if never > 0 {
            stuck += 1;
            println!("round {round}: {never} of {n} lost() never resolve though loss() = {:?}", guard.loss());
        }
    }
    assert_eq!(stuck, 0, "rounds in which a lost() never resolved");
}

/// C10: try behind a waiter behind an adopted lock.
#[test]
fn try_behind_a_waiter_of_an_adopted_lock() {
    let r = within("try adopted", ms(5000), || {
        multi().block_on(async {
            let here = Memory::new();
            let there = here.contender();
            let handed = here.lock("k").await.unwrap().hand_off().unwrap();
            let guard = there.adopt(&handed, &LockOptions::new()).await.unwrap().unwrap();
            let t2 = there.clone();
            let waiter = tokio::spawn(async move { t2.lock("k").await });
            tokio::time::sleep(ms(50)).await;
            let r = tokio::time::timeout(ms(2000), there.try_lock("k")).await;
            println!("try: {:?}", r.as_ref().map(|r| r.as_ref().map(|g| g.is_some())));
            assert!(r.is_ok(), "try_lock did not answer for 2 s");
            drop(guard);
            waiter.await.unwrap().unwrap();
        })
    });
    assert!(r.is_some());
}

/// C10: held is told as failure.
#[test]
fn held_is_told_as_failure_after_an_answer_was_lost() {
    let s = Scripted::new();
    let r = within("failed", ms(5000), move || {
        multi().block_on(async {
            let e = s.engine();
            s.set(|x| x.claims.push_back(Does::LostAnswer));
            // repeated with the same owner only where the store queues? see what comes
            let guard = e.lock("k").await.unwrap();
            let e2 = e.clone();
            let waiter = tokio::spawn(async move { e2.lock("k").await });
            tokio::time::sleep(ms(50)).await;
            let t = tokio::time::timeout(ms(1000), e.try_lock("k")).await;
            println!("try: {t:?}");
            let t2 = e.acquire(&key("k"), &LockOptions::new().wait(Wait::UpTo(ms(100)))).await;
            println!("lock_for: {t2:?}");
            assert!(matches!(t, Ok(Ok(None))) && matches!(t2, Ok(None)));
            drop(guard);
            let _ = waiter.await;
        })
    });
    assert!(r.is_some());
}

/// C12/C13: the release through a runtime that then rests spawns the next claim there.
#[test]
fn a_runtime_that_rests_after_its_release_stalls_waiters_of_another() {
    let s = Scripted::new();
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
    // runtime a is alive and not driven any more
    let t = Instant::now();
    let ok = b.block_on(async { tokio::time::timeout(ms(8000), futures::future::join_all(ws)).await.is_ok() });
    println!("after {:?}: {ok}", t.elapsed());
    if !ok {
        let holders = b.block_on(e.inspect(&key("k"))).unwrap();
        println!("store: {:?}", holders);
    }
    std::mem::forget(a);
    std::mem::forget(b);
    assert!(ok, "the waiters of the live runtime were not served in 8 s on a free key");
}

/// C12: a cancelled wait in a runtime that rests.
#[test]
fn a_claim_under_way_in_a_runtime_that_rests_stalls_others() {
    let s = Scripted::new();
    let a = cur();
    let b = multi();
    let e = s.engine();
    s.set(|x| x.claim = Does::Slow(ms(30)));
    // two that wait in a; the second makes the first's claim a task there; both are cancelled.
    a.block_on(async {
        let one = e.lock("k");
        let two = e.lock("k");
        let _ = tokio::time::timeout(ms(5), futures::future::join(one, two)).await;
    });
    s.set(|x| x.claim = Does::Well);
    let t = Instant::now();
    let ok = b.block_on(async { tokio::time::timeout(ms(5000), e.lock("k")).await.is_ok() });
    println!("lock: {ok} after {:?}", t.elapsed());
    let tr = b.block_on(async { tokio::time::timeout(ms(2000), e.try_lock("k")).await.is_ok() });
    println!("try: {tr}");
    std::mem::forget(a);
    std::mem::forget(b);
    assert!(ok, "nobody holds the key, and lock() of a live runtime waits");
}

/// C21: a guard that is dropped on a plain thread with one resting runtime among the live ones.
#[test]
fn a_drop_outside_goes_to_a_resting_runtime() {
    let mut late = 0;
    for round in 0..12 {
        let s = Scripted::new();
        let e = s.engine();
        let a = cur();
        let b = multi();
        let other = a.block_on(e.lock("other")).unwrap();
        let guard = b.block_on(e.lock("k")).unwrap();
        std::thread::spawn(move || drop(guard)).join().unwrap();
        let c = s.engine();
        let ok = b.block_on(async { tokio::time::timeout(ms(1000), c.lock("k")).await.is_ok() });
        if !ok {
            late += 1
        }
        std::mem::forget(a);
        std::mem::forget(other);
    }
    println!("{late} of 12 not released within 1 s");
    assert_eq!(late, 0);
}

/// release() with an executor outside tokio, lost(), close()
#[test]
fn outside_of_tokio() {
    let s = Scripted::new();
    s.set(|x| x.release = Does::Slow(ms(1)));
    let e = s.engine();
    let b = multi();
    let guard = b.block_on(e.lock("k")).unwrap();
    let guard2 = b.block_on(e.lock("k2")).unwrap();
    let guard3 = b.block_on(e.lock("k3")).unwrap();
    let mut bad = Vec::new();
    let r = std::thread::spawn(move || futures::executor::block_on(guard.renew())).join();
    println!("renew outside: {}", r.is_ok());
    if r.is_err() {
        bad.push("renew")
    }
    let r = std::thread::spawn(move || futures::executor::block_on(guard2.release())).join();
    println!("release outside: {:?}", r.is_ok());
    if r.is_err() {
        bad.push("release")
    }
    let r = std::thread::spawn(move || {
        let f = guard3.lost();
        futures::executor::block_on(async {
            futures::future::select(Box::pin(f), Box::pin(futures::future::ready(()))).await;
        })
    })
    .join();
    println!("lost outside: {:?}", r.is_ok());
    if r.is_err() {
        bad.push("lost")
    }
    let e2 = e.clone();
    let r = std::thread::spawn(move || futures::executor::block_on(e2.close())).join();
    println!("close outside: {:?}", r.is_ok());
    if r.is_err() {
        bad.push("close")
    }
    assert!(bad.is_empty(), "panicked: {bad:?}");
}

/// C20/C21: a release that failed once is repeated, also when nobody has the locker.
#[test]
fn a_failed_release_is_repeated_though_the_locker_is_gone() {
    let s = Scripted::new();
    let b = multi();
    let other = s.engine();
    for how in ["drop", "release"] {
        let e = s.engine();
        let guard = b.block_on(e.lock("k")).unwrap();
        drop(e);
        s.set(|x| x.releases.push_back(Does::Unavailable));
        let n = s.count(2);
        b.block_on(async { if how == "drop" { drop(guard) } else { println!("{:?}", guard.release().await) } });
        std::thread::sleep(ms(800));
        println!("{how}: releases sent {}", s.count(2) - n);
        let free = b.block_on(other.try_lock("k")).unwrap().is_some();
        assert!(free, "{how}: the key is not free 0.8 s after one failed release");
    }
}

/// C26: a loss by the clock is counted and logged
#[test]
fn a_loss_by_the_clock_is_told() {
    use std::sync::Mutex;
    struct Sub(Arc<Mutex<Vec<String>>>);
    impl tracing::Subscriber for Sub {
        fn enabled(&self, _: &tracing::Metadata<'_>) -> bool {
            true
        }
        fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
            tracing::span::Id::from_u64(1)
        }
        fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}
        fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}
        fn event(&self, e: &tracing::Event<'_>) {
            struct V(String);
            impl tracing::field::Visit for V {
                fn record_debug(&mut self, f: &tracing::field::Field, v: &dyn std::fmt::Debug) {
                    self.0 += &format!("{}={:?} ", f.name(), v)
                }
            }
            let mut v = V(String::new());
            e.record(&mut v);
            self.0.lock().unwrap().push(v.0);
        }
        fn enter(&self, _: &tracing::span::Id) {}
        fn exit(&self, _: &tracing::span::Id) {}
    }
    let seen = Arc::new(Mutex::new(Vec::new()));
    let sub = tracing::Dispatch::new(Sub(seen.clone()));
    let _d = tracing::dispatcher::set_default(&sub);
    let rt = cur();
    rt.block_on(async {
        let locks = Memory::new();
        let _g = locks.acquire(&key("a"), &LockOptions::new().ttl(ms(50)).renew(false)).await.unwrap().unwrap();
        let _h = locks.acquire(&key("b"), &LockOptions::new().ttl(ms(500)).max_hold(ms(50))).await.unwrap().unwrap();
        tokio::time::sleep(ms(200)).await;
        println!("{:?} {:?}", _g.loss(), _h.loss());
    });
    let lines = seen.lock().unwrap().clone();
    println!("{lines:#?}");
    assert_eq!(lines.iter().filter(|l| l.contains("lock lost")).count(), 2);
}
