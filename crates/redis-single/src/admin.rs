use std::time::Duration;

use leasehold_core::{Cursor, Holder, Holders, LockKey, OwnerId, Page, Result};
use leasehold_redis::{CHANNEL, Entry, FORCE_RELEASE, INSPECT, Lease, ScriptArguments};

use crate::release::release_owner;
use crate::store::{FORCED, LOCK, Store};

/// Reads who holds a key.
pub(crate) async fn inspect(store: &Store, key: &LockKey) -> Result<Holders> {
    let read = |words: &[&str]| holders(store, words);
    if store.queues {
        store.redis.inspect_queued(&INSPECT, key, &read).await
    } else {
        store.redis.inspect(&INSPECT, key, &read).await
    }
}

/// Reads one page of the held keys that start with `prefix`.
pub(crate) async fn list(store: &Store, prefix: &str, after: Option<&Cursor>) -> Result<Page> {
    let read = |words: &[&str]| holders(store, words);
    if store.queues {
        store.redis.list_queued(&INSPECT, prefix, after, &read).await
    } else {
        store.redis.list(&INSPECT, prefix, after, &read).await
    }
}

/// Frees a key whoever holds it, or only the grant with this epoch, leaves word for the holder, and answers who that was.
pub(crate) async fn force_release(store: &Store, key: &LockKey, only: Option<u64>) -> Result<Holders> {
    /// How long beyond its lease a holder may come and ask what became of it.
    const GRACE: Duration = Duration::from_secs(60);
    let names = store.redis.names(key);
    let arguments = ScriptArguments::default().name(&names, LOCK).name(&names, FORCED);
    let arguments = arguments.name(&names, CHANNEL).text(GRACE.as_millis());
    let arguments = arguments.text(only.map(|epoch| epoch.to_string()).unwrap_or_default());
    let arguments = arguments.text(store.redis.forced_channel());
    let reply = store.redis.run(&FORCE_RELEASE, 2, arguments, None).await?;
    // A release of a free key grants it to the first in the queue. If this one fails, those in the queue ask again.
    let _ = release_owner(store, &names, OwnerId::random()).await;
    let words = reply.words();
    if let ["held", _, _, reason @ ..] = &words[..] {
        store.redis.warn_of_waiters(reason);
    }
    Ok(Holders::new(key, holders(store, &words)?))
}

/// Reads what a script says of one key.
fn holders(store: &Store, words: &[&str]) -> Result<Vec<Holder>> {
    match *words {
        ["free"] => Ok(Vec::new()),
        ["held", entry, left, ..] => {
            let Some(left) = Lease::read(left) else { return Err(store.redis.script_error(&[])) };
            let mut holder = Entry::read(entry).to_holder();
            holder.remaining = left.remaining();
            Ok(vec![holder])
        }
        _ => Err(store.redis.script_error(words)),
    }
}
