use std::collections::BTreeMap;
use std::time::Duration;

use leasehold_core::{Cursor, Error, ErrorKind, FencingToken, Holder, Holders, LockKey, Mode, Page, Result};
use leasehold_mysql::{Columns, Step, Sweep, Value, Walk, named};

use crate::MysqlRwBackend;
use crate::statements::Statements;

/// How many keys a page has at most.
const PAGE: usize = 100;

impl MysqlRwBackend {
    pub(crate) async fn holders_of(&self, key: &LockKey) -> Result<Holders> {
        let name = self.namespace.name_of(key);
        let holders = self.holders_within(name.clone(), name).await?.remove(key).unwrap_or_default();
        Ok(Holders { key: key.clone(), holders })
    }

    pub(crate) async fn page(&self, prefix: &str, after: Option<&Cursor>) -> Result<Page> {
        let after = after.map_or_else(Vec::new, |after| self.namespace.followed_by(after.0.as_bytes()));
        let mut walk = Walk::new(self.namespace.range_of(prefix), after);
        let mut keys = Vec::new();
        loop {
            let reach = [self.statements.reach_locks.as_str(), self.statements.reach_readers.as_str()];
            let stretch = walk.stretch(&self.sessions, "list", &reach).await?;
            let step = Step::new("list", &self.statements.keys).repeatable();
            let found = self.sessions.run(step, named(stretch.names())).await?.rows;
            let name = |row| Columns::of(row, "list").take::<Vec<u8>>();
            let names: Vec<_> = found.iter().take(PAGE).map(name).collect::<Result<_>>()?;
            if let (Some(first), Some(last)) = (names.first(), names.last()) {
                let held = self.holders_within(first.clone(), last.clone()).await?;
                keys.extend(held.into_iter().map(|(key, holders)| Holders { key, holders }));
            }
            let full = names.last().filter(|_| found.len() > PAGE).cloned();
            let Some(end) = full.or(stretch.last) else { return Ok(Page { keys, next: None }) };
            if let Some(key) = self.namespace.key_of(&end) {
                return Ok(Page { keys, next: Some(Cursor(key.as_str().to_owned())) });
            }
            // It ends at a row that is none of ours, and no page goes on from there.
            walk = walk.after(end);
        }
    }

    /// Who holds the keys from the first to the last of these names.
    async fn holders_within(&self, from: Vec<u8>, to: Vec<u8>) -> Result<BTreeMap<LockKey, Vec<Holder>>> {
        let range = named([("from", Value::Bytes(from)), ("to", Value::Bytes(to))]);
        let reply = self.sessions.run(Step::new("inspect", &self.statements.holders).repeatable(), range).await?;
        let mut held: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for row in &reply.rows {
            let mut columns = Columns::of(row, "inspect");
            let name: Vec<u8> = columns.take()?;
            let exclusive: u64 = columns.take()?;
            let mut holder = Holder::new(if exclusive == 1 { Mode::Exclusive } else { Mode::Shared });
            holder.token = Some(FencingToken::of_epoch(columns.take()?));
            holder.remaining = Some(columns.micros()?);
            holder.label = columns.text()?;
            holder.reason = columns.text()?;
            if let Some(key) = self.namespace.key_of(&name) {
                held.entry(key).or_default().push(holder);
            }
        }
        for holders in held.values_mut().filter(|holders| holders.iter().any(|holder| holder.mode == Mode::Exclusive)) {
            // A reader beside a writer is what that is about to become.
            holders.retain(|holder| holder.mode == Mode::Exclusive);
        }
        Ok(held)
    }

    /// Evicts the writer that is seen, and the reader that it may be about to become, or all readers. If it changes hands in
    /// between, looks once more.
    pub(crate) async fn evict(&self, key: &LockKey) -> Result<Holders> {
        for _ in 0..8 {
            let seen = self.holders_of(key).await?;
            let Some(first) = seen.holders.first() else { return Ok(seen) };
            let name = ("name", self.name(key));
            let evict = |statement, params| self.sessions.run(Step::new("force-release", statement), params);
            let mut newest = FencingToken::MAX_EPOCH;
            let mut evicted = false;
            if let (Mode::Exclusive, Some(token)) = (first.mode, first.token) {
                let written = ("written", Value::UInt(token.epoch()));
                let reply = evict(&self.statements.evict_writer, named([name.clone(), written])).await?;
                (evicted, newest) = (reply.affected > 0, reply.id);
            }
            let readers = named([name, ("newest", Value::UInt(newest))]);
            if evict(&self.statements.evict_readers, readers).await?.affected > 0 || evicted {
                return Ok(seen);
            }
        }
        Err(Error::new(ErrorKind::Unavailable, "force-release").detail("it changes hands too fast"))
    }

    pub(crate) async fn collect(&self, older_than: Duration) -> Result<u64> {
        let older_than = older_than.max(Duration::from_secs(1));
        let Statements { reach_locks, idle, collect, reach_readers, dead_readers, bury_readers, .. } =
            &*self.statements;
        let walk = || Walk::new(self.namespace.range_of(""), Vec::new());
        // Those that died, and that no writer had a reason to evict.
        let readers = Sweep { reach: reach_readers, find: dead_readers, delete: bury_readers };
        let age = Value::UInt(u64::try_from(older_than.as_micros()).unwrap_or(u64::MAX >> 8));
        let buried = walk().sweep(&self.sessions, readers, age).await?;
        let keys = Sweep { reach: reach_locks, find: idle, delete: collect };
        let age = Value::UInt(u64::try_from(older_than.as_millis()).unwrap_or(u64::MAX >> 8));
        Ok(buried + walk().sweep(&self.sessions, keys, age).await?)
    }
}
