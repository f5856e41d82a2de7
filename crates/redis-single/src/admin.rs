use std::slice;
use std::time::Duration;

use leasehold_core::{Cursor, Holder, Holders, LockKey, Mode, OwnerId, Page, Result};
use leasehold_redis::{CHANNEL, Entry, FORCE_RELEASE, INSPECT, Reply, lease, millis, script_error};

use crate::release::release_owner;
use crate::store::{FORCED, LOCK, Store};

/// Reads who holds a key.
pub(crate) async fn inspect(store: &Store, key: &LockKey) -> Result<Holders> {
    let seen = inspect_all(store, slice::from_ref(key)).await?;
    holders(store, key, &seen.first().map(Reply::words).unwrap_or_default())
}

/// Reads one page of the held keys that start with `prefix`.
pub(crate) async fn list(store: &Store, prefix: &str, after: Option<&Cursor>) -> Result<Page> {
    let (keys, next) = store.connection.keys(&store.names, LOCK, prefix, after).await?;
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
    let names = store.names.of(key);
    let arguments = [names.part(CHANNEL), millis(GRACE)];
    let reply = store.connection.run(&FORCE_RELEASE, [names.part(LOCK), names.part(FORCED)], arguments, None).await?;
    // A release of a free key grants it to the first in the queue. If this one fails, those in the queue ask again.
    let _ = release_owner(store, &names, OwnerId::random()).await;
    store.signals.forced(&reply.words());
    holders(store, key, &reply.words())
}

async fn inspect_all(store: &Store, keys: &[LockKey]) -> Result<Vec<Reply>> {
    store.connection.inspect(&INSPECT, keys.iter().map(|key| store.names.of(key).part(LOCK)).collect()).await
}

/// Reads what a script says of one key.
fn holders(store: &Store, key: &LockKey, words: &[&str]) -> Result<Holders> {
    let holders = match *words {
        ["free"] => Vec::new(),
        ["held", entry, left, ..] => {
            let Some(left) = lease(left) else { return Err(script_error(&store.connection, &[])) };
            let entry = Entry::read(entry);
            let mut holder = entry.map_or_else(|| Holder::new(Mode::Exclusive), |entry| entry.to_holder());
            holder.remaining = left.remaining();
            vec![holder]
        }
        _ => return Err(script_error(&store.connection, words)),
    };
    Ok(Holders { key: key.clone(), holders })
}
