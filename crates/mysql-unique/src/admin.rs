use std::time::Duration;

use leasehold_core::{Cursor, Error, ErrorKind, FencingToken, Holder, Holders, LockKey, Mode, Page, Result};
use leasehold_mysql::{Columns, RangeScan, Row, Step, Sweep, Value, named};

use crate::sql::Statements;
use crate::store::Store;

/// The most keys of a page of [`list`]. `list.sql` asks for one more, to see whether there is a next page.
const PAGE: usize = 100;

/// How often [`force_release`] looks again at a key that changes hands under it.
const ATTEMPTS: usize = 8;

/// Who holds a key.
pub(crate) async fn inspect(store: &Store, key: &LockKey) -> Result<Holders> {
    let params = named([("name", store.name(key))]);
    let reply = store.sessions.run(Step::new("inspect", &store.statements.inspect).repeatable(), params).await?;
    let found = reply.rows.first().map(|row| holders(store, row)).transpose()?.flatten();
    Ok(found.unwrap_or_else(|| Holders::new(key, Vec::new())))
}

/// A page of the held keys that start with `prefix` and come after `after`.
pub(crate) async fn list(store: &Store, prefix: &str, after: Option<&Cursor>) -> Result<Page> {
    let after = after.map_or_else(Vec::new, |after| store.namespace.followed_by(after.0.as_bytes()));
    let mut scan = RangeScan::new(store.namespace.range_of(prefix), after);
    let mut keys = Vec::new();
    loop {
        let chunk = scan.chunk(&store.sessions, "list", &[&store.statements.chunk_end]).await?;
        let step = Step::new("list", &store.statements.list).repeatable();
        let rows = store.sessions.run(step, named(chunk.names())).await?.rows;
        for row in rows.iter().take(PAGE) {
            keys.extend(holders(store, row)?);
        }
        let full = rows.get(PAGE - 1).filter(|_| rows.len() > PAGE);
        let end = full.map(|row| Columns::of(row, "list").get()).transpose()?.or(chunk.last);
        let Some(end) = end else { return Ok(Page { keys, next: None }) };
        if let Some(key) = store.namespace.key_of(&end) {
            return Ok(Page { keys, next: Some(Cursor(key.as_str().to_owned())) });
        }
        // The chunk ends at a row whose name is no key, so no cursor can name it.
        scan = scan.after(end);
    }
}

/// Frees a key, whoever holds it, or only the grant with this epoch, and answers who held it.
pub(crate) async fn force_release(store: &Store, key: &LockKey, only: Option<u64>) -> Result<Holders> {
    // Only the holder that was seen is released; if the key changes hands in between, it is looked at again.
    for _ in 0..ATTEMPTS {
        let seen = inspect(store, key).await?;
        let token = seen.holders.first().and_then(|holder| holder.token);
        let meant = token.filter(|token| only.is_none_or(|epoch| epoch == token.epoch()));
        let Some(token) = meant else { return Ok(Holders::new(key, Vec::new())) };
        let params = named([("name", store.name(key)), ("epoch", Value::UInt(token.epoch()))]);
        let step = Step::new("force-release", &store.statements.force_release);
        if store.sessions.run(step, params).await?.affected > 0 {
            return Ok(seen);
        }
    }
    Err(Error::new(ErrorKind::Unavailable, "force-release").detail("it changes hands too fast"))
}

/// Deletes the rows of keys that have been free for longer than `older_than`, and answers how many.
pub(crate) async fn gc(store: &Store, older_than: Duration) -> Result<u64> {
    let age = Value::UInt(FencingToken::epoch_at(older_than.max(Sweep::LEAST_AGE)));
    let Statements { chunk_end, gc_find, gc_delete, .. } = &*store.statements;
    let scan = RangeScan::new(store.namespace.range_of(""), Vec::new());
    Sweep { chunk_end, find: gc_find, delete: gc_delete }.run(&store.sessions, scan, age).await
}

/// A held key, from a row of `inspect.sql` or `list.sql`. `None`: the name of the row is no key.
fn holders(store: &Store, row: &Row) -> Result<Option<Holders>> {
    let mut columns = Columns::of(row, "inspect");
    let name: Vec<u8> = columns.get()?;
    let mut holder = Holder::of_epoch(Mode::Exclusive, columns.get()?);
    holder.remaining = Some(columns.micros()?);
    holder.label = columns.text()?;
    holder.reason = columns.text()?;
    Ok(store.namespace.key_of(&name).map(|key| Holders::new(&key, vec![holder])))
}
