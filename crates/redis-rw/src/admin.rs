use std::ops::Range;
use std::slice;
use std::time::Duration;

use leasehold_core::{Cursor, Holders, LockKey, Mode, OwnerId, Page, Result};
use leasehold_redis::{Entry, Lease, NEXT_EPOCH, PROLONG, Reply, SCRIPT_ERROR, Script, ScriptArguments};

use crate::release::release_owner;
use crate::store::{FORCED, HOLDERS_LUA, LOCK, Store, word_of};

const HOLDERS_OF_LUA: &str = include_str!("lua/holders_of.lua");

static INSPECT: Script =
    Script::new(&[SCRIPT_ERROR, NEXT_EPOCH, PROLONG, HOLDERS_LUA, HOLDERS_OF_LUA, include_str!("lua/inspect.lua")]);

static FORCE_RELEASE: Script = Script::new(&[
    SCRIPT_ERROR,
    NEXT_EPOCH,
    PROLONG,
    HOLDERS_LUA,
    HOLDERS_OF_LUA,
    include_str!("lua/force_release.lua"),
]);

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

/// Frees a key whoever holds it, leaves word for the holders, and answers who they were.
pub(crate) async fn force_release(store: &Store, key: &LockKey) -> Result<Holders> {
    /// How long beyond its lease a holder may come and ask what became of it.
    const GRACE: Duration = Duration::from_secs(60);
    let names = store.redis.names(key);
    let arguments = ScriptArguments::default().name(&names, LOCK).name(&names, FORCED).text(GRACE.as_millis());
    let reply = store.redis.run(&FORCE_RELEASE, 2, arguments, None).await?;
    // The release of an owner that holds nothing grants a free key to the first in the queue. If this one fails, those in the
    // queue ask again.
    let _ = release_owner(store, &names, OwnerId::random()).await;
    holders(store, key, &reply.words())
}

async fn inspect_all(store: &Store, keys: &[LockKey]) -> Result<Vec<Reply>> {
    let locks = |range: Range<usize>| {
        keys[range].iter().fold(ScriptArguments::default(), |locks, key| locks.name(&store.redis.names(key), LOCK))
    };
    store.redis.run_for_each(&INSPECT, keys.len(), &locks, None).await.into_iter().collect()
}

/// Reads what `holders_of.lua` says of one key.
fn holders(store: &Store, key: &LockKey, words: &[&str]) -> Result<Holders> {
    let read = |of_one: &[&str]| {
        let [mode, left, entry] = *of_one else { return None };
        let mut holder = Entry::read(entry).to_holder();
        holder.mode = [Mode::Exclusive, Mode::Shared].into_iter().find(|known| word_of(*known) == mode)?;
        holder.remaining = Lease::read(left)?.remaining();
        Some(holder)
    };
    let holders = match words {
        ["free"] => Some(Vec::new()),
        ["held", each @ ..] => each.chunks(3).map(read).collect(),
        _ => None,
    };
    let holders = holders.ok_or_else(|| store.redis.script_error(words))?;
    Ok(Holders { key: key.clone(), holders })
}
