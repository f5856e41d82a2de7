//! Log lines have no effect on a terminal, whatever the keys and the answers of the store contain.

use leasehold_testkit::test;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use async_trait::async_trait;
use leasehold_core::{
    Admin, Attempt, Backend, Capabilities, Capability, Claim, Cursor, Engine, EngineOptions, Error, ErrorKind,
    FencingToken, GrantRef, Holders, LeaseStatus, LockKey, LockOptions, Locker, LossReason, Memory, Notifications,
    Page, Renewal, Result, Subscription, Wait,
};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

const NASTY: &str = "\u{1b}[2J\u{1b}]0;owned\u{7}\n2026-01-01 ERROR forged\r\u{202e}";

/// Everything of it fails once, in words that a hostile server might choose; then it works, and the grant is lost.
#[derive(Debug, Default)]
struct Hostile {
    claims: AtomicUsize,
    renewals: AtomicUsize,
    releases: AtomicUsize,
}

fn refusal() -> Error {
    Error::new(ErrorKind::Unavailable, "ask").detail(format!("the server said {NASTY}"))
}

fn first(count: &AtomicUsize) -> bool {
    count.fetch_add(1, Ordering::Relaxed) == 0
}

#[async_trait]
impl Backend for Hostile {
    fn capabilities(&self) -> Capabilities {
        Capabilities::new("hostile").with(Capability::Lease)
    }
    async fn try_acquire(&self, _: &Claim) -> Result<Attempt> {
        match self.claims.fetch_add(1, Ordering::Relaxed) {
            0 => Err(refusal()),
            1 => Ok(Attempt::Busy { retry_in: None }),
            _ => Ok(Attempt::Granted { epoch: Some(1) }),
        }
    }
    async fn renew(&self, renewals: &[Renewal], _within: Duration) -> Vec<Result<LeaseStatus>> {
        let answer = || if first(&self.renewals) { Err(refusal()) } else { Ok(LeaseStatus::NotHeld) };
        renewals.iter().map(|_| answer()).collect()
    }
    async fn release(&self, _: &GrantRef) -> Result<LeaseStatus> {
        if first(&self.releases) { Err(refusal()) } else { Ok(LeaseStatus::Held) }
    }
    async fn inspect(&self, key: &LockKey) -> Result<Holders> {
        Ok(Holders::new(key, Vec::new()))
    }
    async fn list(&self, _: &str, _: Option<&Cursor>) -> Result<Page> {
        Ok(Page::default())
    }
    async fn force_release(&self, key: &LockKey, _only: Option<u64>) -> Result<Holders> {
        self.inspect(key).await
    }
    fn notifications(&self) -> Option<&dyn Notifications> {
        Some(self)
    }
}

#[async_trait]
impl Notifications for Hostile {
    async fn subscribe(&self, _: &LockKey) -> Result<Box<dyn Subscription>> {
        Err(refusal())
    }
}

/// Writes down all that is logged, as a subscriber does that adds nothing of its own.
struct Witness;

fn lines() -> &'static Mutex<Vec<String>> {
    static LINES: OnceLock<Mutex<Vec<String>>> = OnceLock::new();
    LINES.get_or_init(Mutex::default)
}

#[derive(Default)]
struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        write!(self.0, " {field}={value:?}").unwrap();
    }
}

impl Subscriber for Witness {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("leasehold")
    }
    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let mut line = Line("span".to_owned());
        span.record(&mut line);
        lines().lock().unwrap().push(line.0);
        Id::from_u64(1)
    }
    fn event(&self, event: &Event<'_>) {
        let mut line = Line::default();
        event.record(&mut line);
        lines().lock().unwrap().push(line.0);
    }
    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

#[test(process)]
async fn nothing_that_is_logged_moves_the_cursor_or_begins_a_line_or_a_field() {
    let _ = tracing::subscriber::set_global_default(Witness);
    let engine = Arc::new(Engine::with(Hostile::default(), EngineOptions::default()));
    let key = LockKey::new(format!("k waited_ms=0 {NASTY}")).unwrap();
    let patient = LockOptions::new().ttl(Duration::from_millis(300)).wait(Wait::UpTo(Duration::from_secs(60)));
    let patient = patient.label(NASTY).reason(NASTY);
    let acquire = || engine.acquire(&key, &patient);
    futures::join!(async { acquire().await.unwrap().unwrap().lost().await }, async {
        let _ = acquire().await.unwrap().unwrap().release().await;
    });
    engine.close().await;
    let lines = lines().lock().unwrap();
    let events = ["an attempt failed", "waiting behind", "polling", "renewal failed", "lock lost", "release failed"];
    for what in events.into_iter().chain(["span", "acquire ended"]) {
        assert!(lines.iter().any(|line| line.contains(what)), "{what} was not logged: {lines:#?}");
    }
    for line in lines.iter() {
        assert!(!line.chars().any(|c| c.is_control() || c == '\u{202e}'), "{line:?}");
        assert!(!line.contains(" key=k waited_ms=0"), "a key looks like a field of its own: {line}");
    }
}

#[test(process)]
async fn a_forced_release_is_told_with_the_holder_its_token_and_by_whom() {
    let _ = tracing::subscriber::set_global_default(Witness);
    let locks = Memory::new();
    let options = LockOptions::new().label(NASTY);
    let guard = locks.acquire(&LockKey::new("forced").unwrap(), &options).await.unwrap().unwrap();
    let token = guard.fencing_token().unwrap();
    let told = || {
        let lines = lines().lock().unwrap();
        lines
            .iter()
            .filter(|line| line.contains("released by force") && line.contains("forced"))
            .cloned()
            .collect::<Vec<_>>()
    };
    let later = FencingToken::from(token.get() + 64);
    assert!(locks.force_release_grant(guard.key(), later).await.unwrap().holders.is_empty());
    assert!(told().is_empty() && guard.is_held(), "nothing was released: {:?}", told());
    locks.force_release_grant(guard.key(), token).await.unwrap();
    assert_eq!(guard.loss(), Some(LossReason::ForceReleased));
    let [line] = &told()[..] else { panic!("{:?}", told()) };
    assert!(line.contains(&format!("token={token}")) && line.contains("mode=exclusive"), "{line}");
    assert!(line.contains(&format!("holder={NASTY:?}")), "{line}");
    assert!(line.contains(&format!("by={:?}", leasehold_core::default_label())), "{line}");
}

#[test(process)]
async fn a_lock_that_only_the_clock_takes_away_is_told_while_its_guard_is_left_alone() {
    let _ = tracing::subscriber::set_global_default(Witness);
    let locks = Memory::new();
    let brief = LockOptions::new().ttl(Duration::from_millis(50)).renew(false);
    let _guard = locks.acquire(&LockKey::new("left-alone").unwrap(), &brief).await.unwrap().unwrap();
    let told = || lines().lock().unwrap().iter().any(|line| line.contains("lock lost") && line.contains("left-alone"));
    for _ in 0..2000 {
        if told() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("nobody was told");
}
