#![allow(clippy::all, clippy::unwrap_used, clippy::disallowed_methods, warnings)]
#[path = "eyes/scripted.rs"]
mod scripted;
use leasehold_core::*;
use rand::Rng;
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

fn rests(queues: bool, young: bool) -> bool {
    let mut s = Scripted::new();
    s.deaf = true;
    s.queues = queues;
    let a = cur();
    let b = multi();
    let e = s.engine();
    s.set(|x| x.claim = Does::Slow(ms(5)));
    let go = Arc::new(tokio::sync::Notify::new());
    let ws: Vec<_> = (0..2)
        .map(|i| {
            let (e, go) = (e.clone(), go.clone());
            b.spawn(async move {
                go.notified().await;
                let o = LockOptions::new().label(if i == 0 { "x" } else { "y" });
                let g = e.acquire(&key("k"), &o).await.unwrap().unwrap();
                g.release().await
            })
        })
        .collect();
    std::thread::sleep(ms(50));
    let guard = a.block_on(e.lock("k")).unwrap();
    go.notify_waiters();
    std::thread::sleep(ms(if young { 2 } else { 50 }));
    a.block_on(guard.release()).unwrap();
    let t = Instant::now();
    let ok = b.block_on(async { tokio::time::timeout(ms(5000), futures::future::join_all(ws)).await.is_ok() });
    println!("queues {queues} young {young}: after {:?}: {ok}", t.elapsed());
    std::mem::forget(a);
    std::mem::forget(b);
    ok
}

/// Runtime a releases by block_on and rests; two wait in runtime b.
#[test]
fn a_runtime_that_rests_after_its_release_stalls_waiters_of_another() {
    let all = [rests(false, true), rests(true, false), rests(true, true)];
    assert_eq!(all, [true; 3]);
}

/// Exclusion, order of tokens and liveness under all kinds of ends.
fn stress(name: &str, s: Scripted, off: bool, seconds: u64, shared: bool) {
    let rts: Vec<_> = (0..2).map(|_| multi()).collect();
    let engines: Vec<_> = (0..3).map(|_| if off { s.engine_off() } else { s.engine() }).collect();
    let state: Arc<Vec<(AtomicI64, AtomicU64)>> = Arc::new((0..4).map(|_| Default::default()).collect());
    let bad: Arc<Mutex<Vec<String>>> = Arc::default();
    let ops = Arc::new(AtomicU64::new(0));
    let end = Instant::now() + Duration::from_secs(seconds);
    let mut hs = vec![];
    for t in 0..48 {
        let (e, state, bad, ops) = (engines[t % 3].clone(), state.clone(), bad.clone(), ops.clone());
        hs.push(rts[t % 2].spawn(async move {
            while Instant::now() < end {
                let k: usize = rnd(0..4);
                let name = key(&format!("k{k}"));
                let mut o = LockOptions::new().ttl(ms(2000));
                match rnd(0..6) {
                    0 => o = o.wait(Wait::UpTo(ms(rnd(0..20)))),
                    1 => o = o.wait(Wait::Never),
                    2 => o = o.label("l"),
                    _ => {}
                }
                let read = shared && (rnd(0..10) < 5);
                // cancelled after some polls
                let polls = if (rnd(0..10) < 4) { rnd(0..6) } else { u64::MAX };
                macro_rules! go {
                    ($f:expr, $w:expr) => {{
                        let mut f = $f;
                        let mut n = 0;
                        let r = std::future::poll_fn(|cx| {
                            if n >= polls {
                                return Poll::Ready(None);
                            }
                            n += 1;
                            match f.as_mut().poll(cx) {
                                Poll::Ready(r) => Poll::Ready(Some(r)),
                                Poll::Pending => {
                                    if polls != u64::MAX {
                                        cx.waker().wake_by_ref();
                                    }
                                    Poll::Pending
                                }
                            }
                        })
                        .await;
                        drop(f);
                        match r {
                            Some(Ok(Some(g))) => {
                                let token = g.fencing_token().map(|t| format!("{t:?}"));
                                let tok = g.fencing_token();
                                if $w {
                                    let before = state[k].0.fetch_add(1000, Ordering::SeqCst);
                                    if before != 0 && g.is_held() {
                                        bad.lock().unwrap().push(format!("writer beside {before}"));
                                    }
                                } else {
                                    let before = state[k].0.fetch_add(1, Ordering::SeqCst);
                                    if before >= 1000 && g.is_held() {
                                        bad.lock().unwrap().push(format!("reader beside {before}"));
                                    }
                                }
                                if $w {
                                    let n: u64 = tok.unwrap().into();
                                    let before = state[k].1.fetch_max(n, Ordering::SeqCst);
                                    if before >= n {
                                        bad.lock().unwrap().push(format!("token {n} after {before}"));
                                    }
                                }
                                ops.fetch_add(1, Ordering::Relaxed);
                                match rnd(0..4) {
                                    0 => tokio::task::yield_now().await,
                                    1 => tokio::time::sleep(Duration::from_micros(rnd(0..3000))).await,
                                    _ => {}
                                }
                                state[k].0.fetch_sub(if $w { 1000 } else { 1 }, Ordering::SeqCst);
                                match rnd(0..4) {
                                    0 => drop(g),
                                    1 => {
                                        std::thread::spawn(move || drop(g));
                                    }
                                    2 => {
                                        let mut f = Box::pin(g.release());
                                        let _ = futures::poll!(&mut f);
                                        drop(f)
                                    }
                                    _ => {
                                        let _ = g.release().await;
                                    }
                                }
                            }
                            _ => {}
                        }
                    }};
                }
                if read { go!(e.acquire_read(&name, &o), false) } else { go!(e.acquire(&name, &o), true) }
            }
        }));
    }
    let ok = rts[0].block_on(async {
        tokio::time::timeout(Duration::from_secs(seconds + 8), futures::future::join_all(hs)).await
    });
    println!(
        "{name}: {} grants, all ended: {}, bad: {:?}",
        ops.load(Ordering::SeqCst),
        ok.is_ok(),
        bad.lock().unwrap().iter().take(5).collect::<Vec<_>>()
    );
    if let Ok(rs) = &ok {
        for r in rs {
            if let Err(e) = r {
                println!("task: {e}");
            }
        }
    }
    // all free again
    for k in 0..4 {
        let free =
            rts[0].block_on(async { tokio::time::timeout(ms(3000), engines[0].lock(format!("k{k}"))).await.is_ok() });
        if !free {
            println!("{name}: k{k} is not free after 3 s");
            bad.lock().unwrap().push("stuck".into());
        }
    }
    let all_ended = ok.is_ok();
    for rt in rts {
        std::mem::forget(rt)
    }
    assert!(all_ended && bad.lock().unwrap().is_empty());
}
#[test]
fn stress_plain() {
    stress("plain", Scripted::new(), false, 4, false)
}
#[test]
fn stress_shared() {
    stress("shared", Scripted::new(), false, 4, true)
}
#[test]
fn stress_slow() {
    let s = Scripted::new();
    s.set(|x| {
        x.claim = Does::Slow(ms(1));
        x.release = Does::Slow(ms(1))
    });
    stress("slow", s, false, 4, true)
}
#[test]
fn stress_off_deaf() {
    let mut s = Scripted::new();
    s.deaf = true;
    s.set(|x| {
        x.claim = Does::Slow(ms(1));
    });
    stress("off deaf", s, true, 4, false)
}
#[test]
fn stress_lost_answers() {
    let s = Scripted::new();
    let s2 = s.clone();
    std::thread::spawn(move || {
        loop {
            s2.set(|x| {
                if x.claims.len() < 50 {
                    for _ in 0..40 {
                        x.claims.push_back(match rnd(0..10) {
                            0 => Does::LostAnswer,
                            1 => Does::Unavailable,
                            2 => Does::Slow(ms(3)),
                            _ => Does::Well,
                        });
                        x.releases.push_back(match rnd(0..10) {
                            0 => Does::LostAnswer,
                            1 => Does::Unavailable,
                            2 => Does::Slow(ms(3)),
                            _ => Does::Well,
                        });
                    }
                }
            });
            std::thread::sleep(ms(1));
        }
    });
    stress("lost answers", s, false, 5, false)
}
fn rnd<T: rand::distr::uniform::SampleUniform + PartialOrd>(r: std::ops::Range<T>) -> T {
    rand::rng().random_range(r)
}
