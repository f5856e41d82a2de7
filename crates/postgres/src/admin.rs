use std::time::Duration;

use leasehold_core::{Cursor, Holder, Holders, LockKey, Mode, Page, Result};
use tokio_postgres::Row;
use tokio_postgres::types::Type;

use crate::reply::{column, epoch, micros, odd};
use crate::sessions::{Param, Step};
use crate::store::Store;

const INSPECT: &str = "SELECT * FROM {schema}.holders WHERE name = $1";

const FORCE_RELEASE: &str = "SELECT * FROM {schema}.force_release($1, $2)";

/// The shortest age at which rows are deleted: longer than a statement may wait in the server.
const LEAST_AGE: Duration = Duration::from_secs(5);

/// How long deleting some rows may take: it looks at all.
const SWEEP: Duration = Duration::from_secs(30);

/// Who holds a key: the writer, or the readers.
pub(crate) async fn inspect(store: &Store, key: &LockKey) -> Result<Holders> {
    of_key(store, key, Step::new("inspect", INSPECT), &[]).await
}

/// Frees a key, or ends the grant with this epoch alone, and answers who held it.
pub(crate) async fn force_release(store: &Store, key: &LockKey, only: Option<u64>) -> Result<Holders> {
    // What no epoch can be is nobody's.
    let epoch = only.map(|epoch| i64::try_from(epoch).unwrap_or(-1));
    of_key(store, key, Step::new("force-release", FORCE_RELEASE), &[(&epoch, Type::INT8)]).await
}

async fn of_key(store: &Store, key: &LockKey, step: Step, more: &[Param<'_>]) -> Result<Holders> {
    let name = store.name_of(key);
    let params: Vec<Param<'_>> = [(&name as _, Type::BYTEA)].into_iter().chain(more.iter().cloned()).collect();
    let rows = store.sessions.run(step, &params).await?;
    let holders = rows.iter().map(|row| holder(row, step.operation)).collect::<Result<_>>()?;
    Ok(Holders::new(key, holders))
}

/// A page of the held keys that start with `prefix` and come after `after`: those of the next 5,000 rows.
pub(crate) async fn list(store: &Store, prefix: &str, after: Option<&Cursor>) -> Result<Page> {
    let namespace = &store.sessions.address().namespace;
    let (from, to) = namespace.range_of(prefix);
    let mut after = after.map_or_else(Vec::new, |after| namespace.followed_by(after.0.as_bytes()));
    let mut keys: Vec<Holders> = Vec::new();
    loop {
        let params = [(&from as _, Type::BYTEA), (&to as _, Type::BYTEA), (&after as _, Type::BYTEA)];
        let rows = store.sessions.run(Step::new("list", include_str!("sql/list.sql")), &params).await?;
        let mut last = None;
        for row in &rows {
            let name: Vec<u8> = column(row, 0, "list")?;
            if column::<Option<i64>>(row, 2, "list")?.is_none() {
                last = Some(name);
            } else if let Some(key) = namespace.key_of(&name) {
                match keys.last_mut().filter(|last| last.key == key) {
                    Some(last) => last.holders.push(holder(row, "list")?),
                    None => keys.push(Holders::new(&key, vec![holder(row, "list")?])),
                }
            }
        }
        let Some(last) = last else { return Ok(Page { keys, next: None }) };
        if let Some(key) = namespace.key_of(&last) {
            return Ok(Page { keys, next: Some(Cursor(key.as_str().to_owned())) });
        }
        // A row whose name is no key, so no cursor can name it.
        after = last;
    }
}

fn holder(row: &Row, operation: &'static str) -> Result<Holder> {
    let text = |bytes: Option<Vec<u8>>| bytes.map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    let mode = if column(row, 1, operation)? { Mode::Exclusive } else { Mode::Shared };
    let mut holder = Holder::of_epoch(mode, epoch(column(row, 2, operation)?, operation)?);
    holder.remaining = u64::try_from(column::<i64>(row, 3, operation)?).ok().map(Duration::from_micros);
    holder.label = text(column(row, 4, operation)?);
    holder.reason = text(column(row, 5, operation)?);
    Ok(holder)
}

/// Deletes the rows of readers that have been expired, and of keys that have been free, for longer than `older_than`, and
/// answers how many.
pub(crate) async fn gc(store: &Store, older_than: Duration) -> Result<u64> {
    let (from, to) = store.sessions.address().namespace.range_of("");
    let age = micros(older_than.max(LEAST_AGE));
    let mut deleted = 0;
    for statement in [include_str!("sql/gc_readers.sql"), include_str!("sql/gc_locks.sql")] {
        let mut after = Some(from.clone());
        while let Some(behind) = after {
            let params = [(&behind as _, Type::BYTEA), (&to as _, Type::BYTEA), (&age as _, Type::INT8)];
            let step = Step { limit: SWEEP, ..Step::new("gc", statement) };
            let rows = store.sessions.run(step, &params).await?;
            let row = rows.first().ok_or_else(|| odd("gc"))?;
            deleted += u64::try_from(column::<i64>(row, 0, "gc")?).unwrap_or(0);
            after = column(row, 1, "gc")?;
        }
    }
    Ok(deleted)
}
