//! Many sessions that wait for one key, on real servers.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test fails by panicking, and tells its figures")]

use std::sync::{Arc, Mutex};
use std::time::Duration;

use leasehold_redis_reentrant::core::Clock;
use leasehold_redis_reentrant::{
    LockGuard, LockKey, LockOptions, LockerExt, RedisReentrant, ReleaseOutcome, Result, Session,
};
use leasehold_testkit::redis::Server;
use leasehold_testkit::{needs, test};
use tokio::task::JoinSet;
use tokio::time::sleep;

const SESSIONS: usize = 200;

/// Waits as long as it takes.
async fn lock(session: &Session) -> LockGuard {
    session.acquire(&LockKey::new("k").unwrap(), &LockOptions::new()).await.unwrap().unwrap()
}

/// So many sessions that wait for the key, in this order, and note down when they have it.
async fn line_up(locks: &RedisReentrant, count: usize) -> (JoinSet<()>, Arc<Mutex<Vec<usize>>>) {
    let (mut waiting, order) = (JoinSet::new(), Arc::new(Mutex::new(Vec::new())));
    for number in 0..count {
        let (session, order) = (locks.session(), Arc::clone(&order));
        waiting.spawn(async move {
            let guard = lock(&session).await;
            order.lock().unwrap().push(number);
            assert_eq!(guard.release().await.unwrap(), ReleaseOutcome::Released);
        });
        // It joins the line before it waits for anything else.
        tokio::task::yield_now().await;
    }
    (waiting, order)
}

#[test]
async fn of_all_sessions_that_wait_for_a_key_one_asks_while_another_process_holds_it() -> Result<()> {
    let server = needs("redis-server", Server::start(&[]).await);
    let (here, elsewhere) =
        (RedisReentrant::connect(&server.url()).await?, RedisReentrant::connect(&server.url()).await?);
    let guard = lock(&elsewhere.session()).await;
    let (before, clock, began) = (server.scripts().await, Clock::system(), Clock::system().now());
    let (waiting, order) = line_up(&here, SESSIONS).await;
    // One connection for commands and one for signals, for all of a process.
    assert!(server.clients().await <= 4);
    sleep(Duration::from_secs(1)).await;
    let asked = server.scripts().await - before;
    // One that listens asks after a tenth of a second, and then less and less often.
    let of_one = 10 + clock.now().since(began).as_secs() * 3;
    println!("{SESSIONS} sessions asked {asked} times while it was held");
    assert!(asked <= of_one, "{asked} questions of {SESSIONS} sessions; one of them needs {of_one}");
    let before = server.scripts().await;
    assert_eq!(guard.release().await?, ReleaseOutcome::Released);
    waiting.join_all().await;
    let sent = server.scripts().await - before;
    println!("{sent} scripts served {SESSIONS} sessions");
    assert_eq!(*order.lock().unwrap(), (0..SESSIONS).collect::<Vec<_>>(), "served in the order in which they came");
    // A claim and a release each, and what the first asked meanwhile.
    let most = 2 * SESSIONS as u64 + 10 + clock.now().since(began).as_secs() * 3;
    assert!(sent <= most, "{sent} scripts for {SESSIONS} sessions");
    Ok(())
}
