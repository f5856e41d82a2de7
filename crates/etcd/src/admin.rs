use std::time::Duration;

use futures::future::join_all;
use leasehold_core::{Cursor, Error, ErrorKind, FencingToken, Holder, Holders, LockKey, Page, Result};

use crate::line::{Base, Entry, Line};
use crate::proto::{Compare, Operation, TxnRequest};
use crate::store::{ROUNDS, Store};

/// How many entries one page of a listing is made of.
const PAGE: i64 = 500;

/// How many leases are asked for at a time.
const AT_A_TIME: usize = 32;

/// How long it is known that an owner was released by force, after its lease would have ended. In seconds.
const KNOWN: i64 = 60;

/// How many holders one transaction releases. A server takes 128 operations unless told otherwise.
const RELEASES: usize = 40;

/// Who holds a key, with what is left of each lease.
pub(crate) async fn inspect(store: &Store, key: &LockKey) -> Result<Holders> {
    let (line, _) = store.line("inspect", key).await?;
    shown(store, "inspect", key, &line).await
}

/// The holders of a line whose leases have not ended, and how many wait behind them.
async fn shown(store: &Store, operation: &'static str, key: &LockKey, line: &Line) -> Result<Holders> {
    let held: Vec<_> = line.holders().collect();
    let mut shown = Holders::new(key, those_of(store, operation, line.base, &held).await?);
    shown.waiters = u64::try_from(line.entries.len() - held.len()).ok();
    Ok(shown)
}

/// Those of these holders whose leases have not ended.
async fn those_of(store: &Store, operation: &'static str, base: Base, held: &[&Entry]) -> Result<Vec<Holder>> {
    let mut holders = Vec::with_capacity(held.len());
    for some in held.chunks(AT_A_TIME) {
        let left = join_all(some.iter().map(|entry| store.left(operation, entry.lease))).await;
        for (entry, left) in some.iter().zip(left) {
            let Some(left) = left? else { continue };
            let mut holder = Holder::new(entry.mode);
            holder.token = Some(FencingToken::of_epoch(entry.epoch(base)));
            (holder.label, holder.reason) = (entry.text.label.clone(), entry.text.reason.clone());
            holder.remaining = u64::try_from(left).ok().map(Duration::from_secs);
            holders.push(holder);
        }
    }
    Ok(holders)
}

/// One page of the held keys that start with `prefix`.
pub(crate) async fn list(store: &Store, prefix: &str, after: Option<&Cursor>) -> Result<Page> {
    const LIST: &str = "list";
    let base = store.base(LIST).await?;
    let range = store.names().lines(prefix, after.map(|after| after.0.as_str()));
    if range.0 >= range.1 {
        // A cursor behind all keys with this prefix.
        return Ok(Page { keys: Vec::new(), next: None });
    }
    let read = store.range(LIST, range, PAGE).await?;
    let mut lines: Vec<(LockKey, Line)> = Vec::new();
    for kv in read.kvs {
        let entry = Entry::read(LIST, store.names(), kv)?;
        match lines.last_mut().filter(|(key, _)| *key == entry.key) {
            Some((_, line)) => line.entries.push(entry),
            None => lines.push((entry.key.clone(), Line { base, entries: vec![entry] })),
        }
    }
    let next = lines.last().filter(|_| read.more).map(|(key, _)| Cursor(key.as_str().to_owned()));
    if read.more
        && let Some((key, line)) = lines.last_mut()
    {
        // Its line may be longer than the page.
        *line = store.line(LIST, key).await?.0;
    }
    let mut keys = Vec::with_capacity(lines.len());
    for (key, mut line) in lines {
        line.entries.sort_by_key(|entry| entry.position);
        keys.push(shown(store, LIST, &key, &line).await?);
    }
    keys.retain(|holders| !holders.holders.is_empty());
    Ok(Page { keys, next })
}

/// Deletes the entries of all who hold a key, or of the grant with this epoch alone, and leaves word for each. Who waits stays in the
/// line. No entry is deleted that was changed since it was read.
pub(crate) async fn force_release(store: &Store, key: &LockKey, only: Option<u64>) -> Result<Holders> {
    const FORCE: &str = "force-release";
    // Also those of a round after which others were left.
    let mut released = Holders::new(key, Vec::new());
    for _ in 0..ROUNDS {
        let (line, _) = store.line(FORCE, key).await?;
        let meant = |entry: &&Entry| only.is_none_or(|epoch| epoch == line.epoch(entry));
        let held: Vec<&Entry> = line.holders().filter(meant).collect();
        let Some(longest) = held.iter().map(|entry| entry.text.ttl).max() else { return Ok(released) };
        let lease = store.lease(FORCE, longest.saturating_add(KNOWN)).await?;
        let mut all = true;
        for some in held.chunks(RELEASES) {
            let were = those_of(store, FORCE, line.base, some).await?;
            let compare = some.iter().map(|entry| Compare::unchanged(&entry.name, entry.modified)).collect();
            let mut success = Vec::new();
            for entry in some {
                success.push(Operation::delete(&entry.name));
                success.push(Operation::put(&store.names().forced(key, entry.owner), Vec::new(), lease));
            }
            if store.txn(FORCE, true, TxnRequest { compare, success, failure: Vec::new() }).await?.succeeded {
                released.holders.extend(were);
                store.revoke(some.iter().map(|entry| entry.lease));
            } else {
                all = false;
            }
        }
        if all {
            return Ok(released);
        }
    }
    Err(Error::new(ErrorKind::Unavailable, FORCE).detail("who holds the key changes all the time"))
}
