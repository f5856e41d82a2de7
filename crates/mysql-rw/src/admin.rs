use std::collections::BTreeMap;
use std::time::Duration;

use leasehold_core::{Cursor, Error, ErrorKind, FencingToken, Holder, Holders, LockKey, Mode, OwnerId, Page, Result};
use leasehold_mysql::{Columns, RangeScan, Row, Step, Sweep, Value, named};

use crate::sql::Statements;
use crate::store::Store;

/// The most keys of a page of [`list`]. `list.sql` asks for one more, to see whether there is a next page.
const PAGE: usize = 100;

/// How often [`force_release`] looks again at a key that changes hands under it.
const ATTEMPTS: usize = 8;

/// Who holds a key: the writer, or the readers.
pub(crate) async fn inspect(store: &Store, key: &LockKey) -> Result<Holders> {
    let name = store.namespace.name_of(key);
    let holders = holders_within(store, name.clone(), name).await?.remove(key).unwrap_or_default();
    Ok(Holders::new(key, holders))
}

/// A page of the held keys that start with `prefix` and come after `after`.
pub(crate) async fn list(store: &Store, prefix: &str, after: Option<&Cursor>) -> Result<Page> {
    let after = after.map_or_else(Vec::new, |after| store.namespace.followed_by(after.0.as_bytes()));
    let mut scan = RangeScan::new(store.namespace.range_of(prefix), after);
    let mut keys = Vec::new();
    loop {
        let ends = [store.statements.chunk_end_locks.as_str(), store.statements.chunk_end_readers.as_str()];
        let chunk = scan.chunk(&store.sessions, "list", &ends).await?;
        let step = Step::new("list", &store.statements.list).repeatable();
        let found = store.sessions.run(step, named(chunk.names())).await?.rows;
        let name = |row| Columns::of(row, "list").get::<Vec<u8>>();
        let names: Vec<_> = found.iter().take(PAGE).map(name).collect::<Result<_>>()?;
        if let (Some(first), Some(last)) = (names.first(), names.last()) {
            let held = holders_within(store, first.clone(), last.clone()).await?;
            keys.extend(held.into_iter().map(|(key, holders)| Holders::new(&key, holders)));
        }
        let full = names.last().filter(|_| found.len() > PAGE).cloned();
        let Some(end) = full.or(chunk.last) else { return Ok(Page { keys, next: None }) };
        if let Some(key) = store.namespace.key_of(&end) {
            return Ok(Page { keys, next: Some(Cursor(key.as_str().to_owned())) });
        }
        // The chunk ends at a row whose name is no key, so no cursor can name it.
        scan = scan.after(end);
    }
}

/// Releases the writer or the readers that are seen, and answers whom it has ended. If the key changes hands in between, looks again.
pub(crate) async fn force_release(store: &Store, key: &LockKey, only: Option<u64>) -> Result<Holders> {
    let is_meant = |token: FencingToken| only.is_none_or(|epoch| epoch == token.epoch());
    for _ in 0..ATTEMPTS {
        let mut meant = inspect(store, key).await?;
        meant.holders.retain(|holder| holder.token.is_some_and(is_meant));
        let epochs = || meant.holders.iter().filter_map(|holder| holder.token).map(FencingToken::epoch);
        let (Some(oldest), Some(newest)) = (epochs().min(), epochs().max()) else { return Ok(meant) };
        let ended = if meant.holders.iter().any(|holder| holder.mode == Mode::Exclusive) {
            let params = named([("name", store.name(key)), ("written", Value::UInt(newest))]);
            let step = Step::new("force-release", &store.statements.force_release_writer);
            if store.sessions.run(step, params).await?.affected > 0 { meant.holders } else { Vec::new() }
        } else {
            end_readers(store, key, oldest, newest).await?
        };
        if !ended.is_empty() {
            return Ok(Holders::new(key, ended));
        }
    }
    Err(Error::new(ErrorKind::Unavailable, "force-release").detail("it changes hands too fast"))
}

/// Ends the readers whose epochs are from `oldest` to `newest`, and answers them: of two forced releases at one moment, both have
/// seen a reader, and one has ended it.
async fn end_readers(store: &Store, key: &LockKey, oldest: u64, newest: u64) -> Result<Vec<Holder>> {
    let (name, by) = (("name", store.name(key)), ("by", Value::from(OwnerId::random().as_bytes())));
    let (oldest, newest) = (("oldest", Value::UInt(oldest)), ("newest", Value::UInt(newest)));
    let step = |statement| Step::new("force-release", statement).repeatable();
    let params = named([name.clone(), by.clone(), oldest, newest]);
    store.sessions.run(step(&store.statements.force_release_readers), params).await?;
    let reply = store.sessions.run(step(&store.statements.force_released_readers), named([name, by])).await?;
    Ok(holders(store, &reply.rows)?.remove(key).unwrap_or_default())
}

/// Deletes the rows of readers that have been expired, and of keys that have been free, for longer than `older_than`, and
/// answers how many.
pub(crate) async fn gc(store: &Store, older_than: Duration) -> Result<u64> {
    let older_than = older_than.max(Sweep::LEAST_AGE);
    let Statements { chunk_end_locks, gc_find_locks, gc_delete_locks, .. } = &*store.statements;
    let Statements { chunk_end_readers, gc_find_readers, gc_delete_readers, .. } = &*store.statements;
    let all = || RangeScan::new(store.namespace.range_of(""), Vec::new());
    let readers = Sweep { chunk_end: chunk_end_readers, find: gc_find_readers, delete: gc_delete_readers };
    let age = Value::UInt(u64::try_from(older_than.as_micros()).unwrap_or(u64::MAX >> 8));
    let deleted = readers.run(&store.sessions, all(), age).await?;
    let keys = Sweep { chunk_end: chunk_end_locks, find: gc_find_locks, delete: gc_delete_locks };
    let age = Value::UInt(FencingToken::epoch_at(older_than));
    Ok(deleted + keys.run(&store.sessions, all(), age).await?)
}

/// Who holds the keys whose names are from the first to the last of these, both inclusive.
async fn holders_within(store: &Store, from: Vec<u8>, to: Vec<u8>) -> Result<BTreeMap<LockKey, Vec<Holder>>> {
    let range = named([("from", Value::Bytes(from)), ("to", Value::Bytes(to))]);
    let reply = store.sessions.run(Step::new("inspect", &store.statements.inspect).repeatable(), range).await?;
    holders(store, &reply.rows)
}

/// The holders of each key, from the rows of `inspect.sql`.
fn holders(store: &Store, rows: &[Row]) -> Result<BTreeMap<LockKey, Vec<Holder>>> {
    let mut held: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for row in rows {
        let mut columns = Columns::of(row, "inspect");
        let name: Vec<u8> = columns.get()?;
        let mode = if columns.get::<u64>()? == 1 { Mode::Exclusive } else { Mode::Shared };
        let mut holder = Holder::of_epoch(mode, columns.get()?);
        holder.remaining = Some(columns.micros()?);
        holder.label = columns.text()?;
        holder.reason = columns.text()?;
        if let Some(key) = store.namespace.key_of(&name) {
            held.entry(key).or_default().push(holder);
        }
    }
    Ok(held)
}
