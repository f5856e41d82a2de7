//! Log lines have no effect on a terminal, whatever the keys and the answers of the store contain.

use std::time::Duration;

use leasehold_core::{
    Admin, Clock, ErrorKind, FencingToken, LockKey, LockOptions, LockerExt, LossReason, Memory, Wait,
};
use leasehold_testkit::{Fault, Op, eventually, faulty_memory, test};

use crate::story::Story;

const NASTY: &str = "\u{1b}[2J\u{1b}]0;owned\u{7}\n2026-01-01 ERROR forged\r\u{202e}";

/// All that is logged in this process.
fn logged() -> Story {
    let story = Story::default();
    tracing::subscriber::set_global_default(story.clone()).unwrap();
    story
}

#[test(process)]
async fn nothing_that_is_logged_moves_the_cursor_or_begins_a_line_or_a_field() {
    let logged = logged();
    // Everything of this store fails once, in words that a hostile server might choose.
    let store = faulty_memory(&Clock::system());
    let (engine, other) = (store.engine(), store.engine());
    let key = LockKey::new(format!("k waited_ms=0 {NASTY}")).unwrap();
    let patient = LockOptions::new().ttl(Duration::from_millis(300)).wait(Wait::UpTo(Duration::from_secs(60)));
    let patient = patient.label(NASTY).reason(NASTY);
    let _ends_by_itself = other.acquire(&key, &patient.clone().renew(false)).await.unwrap();
    for op in [Op::TryAcquire, Op::Renew, Op::Release] {
        store.faults.next(op, Fault::Say(ErrorKind::Unavailable, NASTY), 1);
    }
    store.faults.always(Op::Subscribe, Fault::Say(ErrorKind::Unavailable, NASTY));
    let waiting = async { engine.acquire(&key, &patient).await.unwrap().unwrap().release().await };
    let taking = async {
        let lost = engine.acquire(&key, &patient).await.unwrap().unwrap();
        eventually("its renewal has failed", async || store.faults.calls(Op::Renew) > 0).await;
        other.force_release(&key).await.unwrap();
        lost.lost().await
    };
    let _ = futures::join!(taking, waiting);
    engine.close().await;
    let lines = logged.lines();
    let events = ["an attempt failed", "waiting behind", "polling", "renewal failed", "lock lost", "release failed"];
    for what in events.into_iter().chain(["acquire in", "acquire ended"]) {
        assert!(lines.iter().any(|line| line.contains(what)), "{what} was not logged: {lines:#?}");
    }
    for line in &lines {
        assert!(!line.chars().any(|c| c.is_control() || c == '\u{202e}'), "{line:?}");
        assert!(!line.contains(" key=k waited_ms=0"), "a key looks like a field of its own: {line}");
    }
}

#[test(process)]
async fn a_forced_release_is_told_with_the_holder_its_token_and_by_whom() {
    let logged = logged();
    let locks = Memory::new();
    let options = LockOptions::new().label(NASTY);
    let guard = locks.acquire(&LockKey::new("forced").unwrap(), &options).await.unwrap().unwrap();
    let token = guard.fencing_token().unwrap();
    let told = || {
        let is_told = |line: &String| line.contains("released by force") && line.contains("forced");
        logged.lines().into_iter().filter(is_told).collect::<Vec<_>>()
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
    let logged = logged();
    let locks = Memory::new();
    let brief = LockOptions::new().ttl(Duration::from_millis(50)).renew(false);
    let _guard = locks.acquire(&LockKey::new("left-alone").unwrap(), &brief).await.unwrap().unwrap();
    let is_told = |line: &String| line.contains("lock lost") && line.contains("left-alone");
    eventually("it is told", async || logged.lines().iter().any(is_told)).await;
}
