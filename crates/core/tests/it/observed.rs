//! What a recorder of metrics and a subscriber of traces get to see.

#![allow(
    clippy::unwrap_used,
    clippy::float_cmp,
    reason = "a test fails by panicking, and the numbers are small counts"
)]

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use leasehold_core::{
    Admin, Backed, Clock, Engine, EngineOptions, LocalHandoff, LockOptions, LockerExt, Memory, RwLockerExt, Wait,
    describe_metrics,
};
use leasehold_testkit::test;
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};

use crate::story::Story;

const LONG: Duration = Duration::from_secs(60);

/// What is recorded, as a monitoring system gets it.
struct Seen(PrometheusHandle);

impl Seen {
    /// The number of a metric, whatever its labels.
    fn of(&self, name: &str) -> f64 {
        let text = self.0.render();
        let numbers = text.lines().filter_map(|line| line.rsplit_once(' '));
        let its = numbers.filter(|(metric, _)| metric.split('{').next() == Some(name));
        its.map(|(_, number)| number.parse::<f64>().unwrap()).sum()
    }
}

fn block_on<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(work)
}

/// One test at a time: a place in the code that is met for the first time beside a new subscriber may be taken for one that
/// nobody wants to see.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What is recorded of this work.
fn recorded(work: impl AsyncFnOnce(&Seen, Memory)) -> Seen {
    let _alone = alone();
    let recorder = PrometheusBuilder::new().build_recorder();
    let seen = Seen(recorder.handle());
    metrics::with_local_recorder(&recorder, || block_on(work(&seen, Memory::new())));
    seen
}

/// What is traced of this work in paused time, on a store that follows it.
fn traced(work: impl AsyncFnOnce(Memory)) -> Vec<String> {
    let _alone = alone();
    let story = Story::default();
    tracing::subscriber::with_default(story.clone(), || {
        block_on(async {
            tokio::time::pause();
            work(Memory::with_clock(Clock::tokio())).await;
        });
    });
    story.lines()
}

#[test]
fn who_waits_behind_a_holder_of_this_process_is_counted() {
    let seen = recorded(async |seen, locks| {
        let held = locks.lock("k").await.unwrap();
        assert!(locks.lock_for("k", Duration::from_millis(10)).await.is_err());
        assert_eq!(seen.of("leasehold_contended_total"), 1.0);
        drop(held);
        drop(locks.lock("k").await.unwrap());
        assert_eq!(seen.of("leasehold_contended_total"), 1.0, "nobody was in the way");
    });
    assert_eq!(seen.of("leasehold_queue_length"), 0.0);
    assert_eq!(seen.of("leasehold_acquire_wait_seconds_count"), 3.0);
}

#[test]
fn each_guard_is_counted_once_however_it_ends() {
    recorded(async |seen, locks| {
        let counts = || (seen.of("leasehold_hold_seconds_count"), seen.of("leasehold_guards"));
        let readers = [locks.read("k").await.unwrap(), locks.read("k").await.unwrap()];
        assert_eq!(counts(), (0.0, 2.0));
        locks.contender().force_release(readers[0].key()).await.unwrap();
        for reader in &readers {
            let _ = reader.renew().await;
            assert!(reader.loss().is_some());
        }
        drop(readers);
        assert_eq!(counts(), (2.0, 0.0));
        locks.lock("k").await.unwrap().release().await.unwrap();
        drop(locks.lock("k").await.unwrap());
        let reader = locks.lock("k").await.unwrap().downgrade(&LockOptions::new()).await.unwrap();
        assert_eq!(counts(), (5.0, 1.0));
        drop(reader);
        locks.lock("k").await.unwrap().detach().unwrap();
        assert_eq!(counts(), (7.0, 0.0));
        let held = locks.lock("k").await.unwrap();
        // The next one waits already, so that its guard comes by hand-off.
        let (next, released) = tokio::join!(locks.lock("k"), async { held.release().await });
        released.unwrap();
        drop(next.unwrap());
        assert_eq!(counts(), (9.0, 0.0));
    });
}

#[test]
fn every_metric_has_its_name_and_is_described() {
    let seen = recorded(async |_, locks| {
        describe_metrics();
        let held = locks.lock("k").await.unwrap();
        let (next, released) = tokio::join!(locks.lock("k"), async { held.release().await });
        released.unwrap();
        let next = next.unwrap();
        next.renew().await.unwrap();
        locks.contender().force_release(next.key()).await.unwrap();
        next.renew().await.unwrap_err();
    });
    let text = seen.0.render();
    let names = |of: &str| {
        let lines = text.lines().filter_map(|line| line.strip_prefix(of)?.split(' ').next());
        lines.collect::<BTreeSet<_>>()
    };
    let all = "acquire_wait_seconds contended_total guards hold_seconds losses_total queue_length renewals_total";
    let all: BTreeSet<_> = all.split(' ').map(|name| format!("leasehold_{name}")).collect();
    let used = names("# TYPE ");
    assert!(all.iter().all(|name| used.contains(name.as_str())) && used.is_subset(&names("# HELP ")), "{text}");
}

#[test]
fn the_spans_of_a_lock_have_its_token() {
    let mut token = String::new();
    let lines = traced(async |locks| {
        let guard = locks.lock("k").await.unwrap();
        token = format!("token={}", guard.fencing_token().unwrap());
        guard.release().await.unwrap();
    });
    let token = token.as_str();
    for (start, parts) in [
        ("acquire in", ["key=\"k\"", ""]),
        ("recorded", [token, ""]),
        ("event in [acquire]", ["acquire ended", token]),
        ("hold in", ["key=\"k\"", token]),
        ("release in [hold]", ["key=\"k\"", token]),
        ("event in [release]", ["hold ended", token]),
    ] {
        let has_it = |line: &String| line.starts_with(start) && parts.iter().all(|part| line.contains(part));
        assert!(lines.iter().any(has_it), "{start} {parts:?}: {lines:#?}");
    }
}

fn told_of_long_waits(work: impl AsyncFnOnce(Memory)) -> Vec<String> {
    traced(work).into_iter().filter(|line| line.contains("waiting long")).collect()
}

fn warns_after(after: u64) -> LockOptions {
    LockOptions::new().wait(Wait::UpTo(Duration::from_secs(10))).warn_after(Duration::from_secs(after))
}

#[test]
fn a_long_wait_names_the_holder_once() {
    let mut token = 0;
    let told = told_of_long_waits(async |locks| {
        let held = locks.lock_with("k", &LockOptions::new().label("ada").reason("invoices")).await.unwrap();
        token = held.fencing_token().unwrap().get();
        locks.contender().lock_with("k", &warns_after(2)).await.unwrap_err();
        // As a default of the locker, which a request can call off.
        let defaults = locks.contender().with_defaults(warns_after(3));
        defaults.lock("k").await.unwrap_err();
        defaults.lock_with("k", &LockOptions::new().warn_after(Duration::MAX)).await.unwrap_err();
    });
    assert_eq!(told.len(), 2, "{told:#?}");
    let token = format!("token={token}");
    let parts = ["event in [acquire]", "key=\"k\"", "holders=1", "holder=\"ada\"", "reason=\"invoices\""];
    let numbers = ["mode=exclusive", token.as_str(), "held_ms=", "remaining_ms="];
    assert!(parts.iter().chain(&numbers).all(|part| told.iter().all(|line| line.contains(part))), "{told:#?}");
    assert!(told[0].contains("waited_ms=200") && told[1].contains("waited_ms=300"), "{told:#?}");
}

#[test]
fn a_warning_on_a_store_that_is_silent_delays_no_grant() {
    let told = told_of_long_waits(async |locks| {
        // Another locker on the store, which hands off locks that are older than usual.
        let handoff = LocalHandoff::new().age(LONG);
        let options = EngineOptions::new().clock(Clock::tokio()).local_handoff(handoff);
        let ours = Engine::with(locks.engine().backend().clone(), options);
        let (warns, start) = (warns_after(2).ttl(LONG), tokio::time::Instant::now());
        let held = ours.lock_with("k", &warns).await.unwrap();
        let waits = || async { drop(ours.lock_with("k", &warns).await.unwrap()) };
        let falls_silent = async {
            // Those who wait have listened for the key by then, and had its lease confirmed.
            tokio::time::sleep(Duration::from_millis(1500)).await;
            locks.silent_for(Duration::from_secs(6));
        };
        let releases = async {
            tokio::time::sleep(Duration::from_millis(4500)).await;
            held.release().await.unwrap();
        };
        let all = futures::future::join_all([waits(), waits(), waits(), waits()]);
        tokio::join!(all, falls_silent, releases);
        // Each guard was passed on in the process, while the last question had no answer.
        assert_eq!(start.elapsed().as_millis() / 10, 450);
    });
    // The questions go out one after the other, and each is given up after a second.
    let waited = |ms| told.iter().filter(|line| line.contains(&format!("waited_ms={ms}"))).count();
    assert_eq!((waited(300), waited(400), told.len()), (1, 1, 2), "{told:#?}");
    assert!(told.iter().all(|line| line.contains("holders=0") && line.contains("gave no answer")), "{told:#?}");
}
