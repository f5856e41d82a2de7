use futures::future::join_all;
use tokio::runtime::Builder;
use tokio::task::spawn_blocking;
use tokio::time::timeout;

use super::stage::PATIENCE;
use crate::{Locker, LockerExt};

/// Takes and releases keys on a runtime that then rests: `block_on` has returned, and nobody drives it any more. Callers on
/// another runtime are served all the same.
///
/// To be called on a runtime of several threads, on which the locker connected.
///
/// # Panics
/// If they are not.
pub async fn a_runtime_that_rests_stalls_nobody<L: Locker + Clone + 'static>(locks: L) {
    let rounds = move || {
        let runtime = || Builder::new_current_thread().enable_all().build().expect("a runtime");
        let (rests, other) = (runtime(), runtime());
        for keys in [1, 4, 16, 64].repeat(3) {
            rests.block_on(cycles(&locks, "rests", keys));
            let served = other.block_on(async { timeout(PATIENCE, cycles(&locks, "other", keys)).await });
            assert!(served.is_ok(), "{keys} callers wait for a runtime that rests");
        }
    };
    spawn_blocking(rounds).await.expect("the rounds ended");
}

async fn cycles<L: Locker>(locks: &L, who: &str, keys: usize) {
    let cycle = async |key: usize| {
        let guard = locks.lock(format!("{who}/{key}")).await.expect("granted");
        guard.release().await.expect("released");
    };
    join_all((0..keys).map(cycle)).await;
}
