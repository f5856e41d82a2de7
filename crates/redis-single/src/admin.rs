use std::ops::Range;
use std::slice;
use std::time::Duration;

use leasehold_core::{Cursor, Holders, LockKey, OwnerId, Page, Result};
use leasehold_redis::{CHANNEL, Entry, FORCE_RELEASE, INSPECT, Lease, Reply, ScriptArguments};

use crate::release::release_owner;
use crate::store::{FORCED, LOCK, Store};

/// Reads who holds a key.
pub(crate) async fn inspect(store: &Store, key: &LockKey) -> Result<Holders> {
    let seen = inspect_all(store, slice::from_ref(key)).await?;
    holders(store, key, &seen.first().map(Reply::words).unwrap_or_default())
}

/// Reads one page of the held keys that start with `prefix`.
pub(crate) async fn list(store: &Store, prefix: &str, after: Option<&Cursor>) -> Result<Page> {
    let (keys, next) = store.redis.keys(LOCK, prefix, after).await?;
    let mut page = Page { keys: Vec::new(), next };
    for (key, seen) in keys.iter().zip(inspect_all(store, &keys).await?) {
        // Freed since the scan, or not ours: not a held key either way.
        if !matches!(seen.words()[..], ["free" | "foreign", ..]) {
            page.keys.push(holders(store, key, &seen.words())?);
        }
    }
    Ok(page)
}

/// Frees a key whoever holds it, leaves word for the holder, and answers who that was.
pub(crate) async fn force_release(store: &Store, key: &LockKey) -> Result<Holders> {
    /// How long beyond its lease a holder may come and ask what became of it.
    const GRACE: Duration = Duration::from_secs(60);
    let names = store.redis.names(key);
    let arguments = ScriptArguments::default().name(&names, LOCK).name(&names, FORCED);
    let arguments = arguments.name(&names, CHANNEL).text(GRACE.as_millis());
    let reply = store.redis.run(&FORCE_RELEASE, 2, arguments, None).await?;
    // A release of a free key grants it to the first in the queue. If this one fails, those in the queue ask again.
    let _ = release_owner(store, &names, OwnerId::random()).await;
    let words = reply.words();
    if let ["held", _, _, reason @ ..] = &words[..] {
        store.redis.warn_of_waiters(reason);
    }
    holders(store, key, &words)
}

async fn inspect_all(store: &Store, keys: &[LockKey]) -> Result<Vec<Reply>> {
    let locks = |range: Range<usize>| {
        keys[range].iter().fold(ScriptArguments::default(), |locks, key| locks.name(&store.redis.names(key), LOCK))
    };
    store.redis.run_for_each(&INSPECT, keys.len(), &locks, None).await.into_iter().collect()
}

/// Reads what a script says of one key.
fn holders(store: &Store, key: &LockKey, words: &[&str]) -> Result<Holders> {
    let holders = match *words {
        ["free"] => Vec::new(),
        ["held", entry, left, ..] => {
            let Some(left) = Lease::read(left) else { return Err(store.redis.script_error(&[])) };
            let mut holder = Entry::read(entry).to_holder();
            holder.remaining = left.remaining();
            vec![holder]
        }
        _ => return Err(store.redis.script_error(words)),
    };
    Ok(Holders { key: key.clone(), holders })
}
