//! How a program tests its own use of locks: on the store in memory, whose time the test moves and which fails when the test
//! wants it to. No server is needed, and no test waits.
//!
//! ```console
//! $ cargo test -p leasehold-examples --test it own_tests
//! ```

use leasehold_testkit::test;
use std::sync::Mutex;
use std::time::Duration;

use leasehold::{Admin, Clock, ErrorKind, LockKey, LockOptions, Locker, LockerExt, LossReason, Memory, Result, Wait};

/// What is tested: charges an invoice once, under its lock. `false`: somebody else is at it.
///
/// It takes any locker, so that a test can give it one in memory.
async fn charge(locks: &dyn Locker, invoice: u32, charged: &Mutex<Vec<u32>>) -> Result<bool> {
    let key = LockKey::new(format!("invoice/{invoice}"))?;
    let options = LockOptions::new().ttl(Duration::from_secs(30)).wait(Wait::UpTo(Duration::from_secs(5)));
    let Some(guard) = locks.acquire(&key, &options).await? else { return Ok(false) };
    tokio::time::sleep(Duration::from_secs(60)).await; // the payment provider is slow
    if guard.is_held() && !charged.lock().unwrap().contains(&invoice) {
        charged.lock().unwrap().push(invoice);
    }
    guard.release().await?;
    Ok(true)
}

/// With `start_paused` time stands still until every task waits, and then goes on to the next timer: minutes pass in no time.
/// `Clock::tokio()` has the locks follow that time; on `Memory::new()` a wait of 5 s would last 5 s.
fn in_paused_time() -> Memory {
    Memory::with_clock(Clock::tokio())
}

#[test(paused)]
async fn a_lease_is_renewed_while_the_work_takes_longer() {
    let (locks, charged) = (in_paused_time(), Mutex::default());
    assert!(charge(&locks, 42, &charged).await.unwrap());
    assert_eq!(*charged.lock().unwrap(), [42]);
}

#[test(paused)]
async fn two_at_a_time_charge_once() {
    let (here, charged) = (in_paused_time(), Mutex::default());
    let there = here.contender(); // another process on the same store
    let (first, second) = tokio::join!(charge(&here, 42, &charged), charge(&there, 42, &charged));
    assert_eq!((first.unwrap(), second.unwrap()), (true, false), "the second gives up after five seconds");
    assert_eq!(*charged.lock().unwrap(), [42]);
}

#[test(paused)]
async fn nothing_is_charged_after_the_lock_was_lost() {
    let (locks, charged) = (in_paused_time(), Mutex::default());
    let operator = locks.contender();
    let takes_it_away = async {
        tokio::time::sleep(Duration::from_secs(20)).await;
        operator.force_release(&LockKey::new("invoice/42").unwrap()).await.unwrap();
    };
    let (ended, ()) = tokio::join!(charge(&locks, 42, &charged), takes_it_away);
    assert!(ended.unwrap());
    assert!(charged.lock().unwrap().is_empty());
}

#[test(paused)]
async fn a_store_that_fails_is_an_error_and_never_taken_for_a_held_lock() {
    let (locks, charged) = (in_paused_time(), Mutex::default());
    locks.fail_next(1, ErrorKind::Unavailable);
    assert!(charge(&locks, 42, &charged).await.unwrap(), "a failure that passes is ridden out");
    locks.fail_next(usize::MAX, ErrorKind::Unavailable);
    assert_eq!(charge(&locks, 43, &charged).await.unwrap_err().kind(), ErrorKind::Unavailable);
    assert_eq!(*charged.lock().unwrap(), [42]);
}

#[test(paused)]
async fn a_store_that_is_silent_ends_the_lease() {
    let locks = in_paused_time();
    let guard = locks.lock("invoice/42").await.unwrap();
    locks.silent_for(Duration::from_secs(600));
    assert_eq!(guard.lost().await, LossReason::Unreachable);
}

/// Without paused time: the test moves the clock by hand, as a suspended machine finds it on waking up.
#[test]
async fn a_machine_that_slept_too_long_has_lost_the_lock() {
    let clock = Clock::system();
    let locks = Memory::with_clock(clock.clone());
    let guard = locks.lock_with("invoice/42", &LockOptions::new().renew(false)).await.unwrap();
    clock.advance(Duration::from_secs(3600));
    assert!(!guard.is_held());
    assert!(locks.contender().try_lock("invoice/42").await.unwrap().is_some());
}
