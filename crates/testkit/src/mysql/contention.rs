//! Many tasks that want the same key at once.
#![allow(clippy::unwrap_used, clippy::missing_panics_doc, reason = "a test may panic")]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use leasehold_core::{Locker, LockerExt};

/// Has many tasks of several clients take one key at once, and fails if two hold it at the same time.
pub async fn crowd<L: Locker + Clone + 'static>(clients: &[L], key: &str) {
    let inside = Arc::new(AtomicUsize::new(0));
    let mut tasks = tokio::task::JoinSet::new();
    for client in clients.iter().cycle().take(16) {
        let (client, key, inside) = (client.clone(), key.to_owned(), Arc::clone(&inside));
        tasks.spawn(async move {
            for _ in 0..5 {
                let guard = client.lock(key.as_str()).await.unwrap();
                assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0, "two at once");
                tokio::task::yield_now().await;
                inside.fetch_sub(1, Ordering::SeqCst);
                guard.release().await.unwrap();
            }
        });
    }
    tasks.join_all().await;
}
