use std::time::Duration;

use futures::future::try_join_all;
use leasehold_core::{LockGuard, Locker, LockerExt, Result};

use super::server::Server;

/// How long a counter lives that nothing was counted with for most of its time.
const OLD: Duration = Duration::from_secs(600);

/// What a busy machine may take between a grant and a look at its counter.
const AMPLE: Duration = Duration::from_secs(60);

/// Whether a counter has its whole time before it, but for what has passed since the last grant. A retention is an hour at
/// least, so that an old counter is not taken for a new one.
pub async fn is_kept_for(server: &Server, counter: &str, retention: Duration) -> bool {
    let left = server.ask(&["PTTL", counter]).await.number();
    u64::try_from(left).is_ok_and(|left| {
        let left = Duration::from_millis(left);
        left + AMPLE > retention && left <= retention
    })
}

/// Lets most of a counter's time pass, so that it is seen whether the next grant gives it a whole one.
///
/// # Panics
/// When there is no counter.
pub async fn grows_old(server: &Server, counter: &str) {
    let old = OLD.as_millis().to_string();
    assert_eq!(server.ask(&["PEXPIRE", counter, &old]).await.number(), 1, "{counter} is gone");
}

/// Takes twenty keys together, three times, and looks whether each grant gives its counter the whole retention.
///
/// # Panics
/// When one does not, or the claims did not leave together.
pub async fn batches_give_counters_their_whole_time(
    server: &Server,
    locker: &impl Locker,
    retention: Duration,
) -> Result<()> {
    let keys: Vec<String> = (0..20).map(|key| format!("batch/{key}")).collect();
    for grant in 1..=3 {
        let before = server.calls("evalsha").await;
        let guards = try_join_all(keys.iter().map(|key| locker.lock(key.as_str()))).await?;
        assert!(server.calls("evalsha").await - before < 20, "they did not leave together");
        for key in &keys {
            let fence = format!("{{leasehold:{key}}}:fence");
            assert!(is_kept_for(server, &fence, retention).await, "{key}, grant {grant} in a batch");
            grows_old(server, &fence).await;
        }
        try_join_all(guards.into_iter().map(LockGuard::release)).await?;
    }
    Ok(())
}
