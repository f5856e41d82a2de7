use std::collections::BTreeMap;
use std::time::Duration;

use leasehold_core::{Cursor, Error, ErrorKind, FencingToken, Holder, Holders, LockKey, Mode, Page, Result};
use leasehold_mysql::{Columns, Step, Value, named};

use crate::MysqlRwBackend;

/// How many keys a page has at most.
const PAGE: usize = 100;

impl MysqlRwBackend {
    pub(crate) async fn holders_of(&self, key: &LockKey) -> Result<Holders> {
        let name = self.namespace.name_of(key);
        let holders = self.holders_within(name.clone(), name).await?.remove(key).unwrap_or_default();
        Ok(Holders { key: key.clone(), holders })
    }

    pub(crate) async fn page(&self, prefix: &str, after: Option<&Cursor>) -> Result<Page> {
        let (from, to) = self.namespace.range_of(prefix);
        let after = after.map_or_else(Vec::new, |after| self.namespace.followed_by(after.0.as_bytes()));
        let range = [("from", from), ("to", to), ("after", after)].map(|(name, value)| (name, Value::Bytes(value)));
        let found = self.sessions.run(Step::new("list", &self.statements.keys).repeatable(), named(range)).await?.rows;
        let name = |row| Columns::of(row, "list").take::<Vec<u8>>();
        let names: Vec<_> = found.iter().take(PAGE).map(name).collect::<Result<_>>()?;
        let (Some(first), Some(last)) = (names.first(), names.last()) else { return Ok(Page::default()) };
        let held = self.holders_within(first.clone(), last.clone()).await?;
        let next = Some(last).filter(|_| found.len() > PAGE).and_then(|last| self.namespace.key_of(last));
        let keys = held.into_iter().map(|(key, holders)| Holders { key, holders }).collect();
        Ok(Page { keys, next: next.map(|key| Cursor(key.as_str().to_owned())) })
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
            holder.token = Some(FencingToken::of_tenure(columns.take()?));
            holder.remaining = Some(columns.micros()?);
            holder.label = columns.text()?;
            holder.reason = columns.text()?;
            if let Some(key) = self.namespace.key_of(&name) {
                held.entry(key).or_default().push(holder);
            }
        }
        Ok(held)
    }

    /// Evicts the writer that is seen, or all readers. If it changes hands in between, looks once more.
    pub(crate) async fn evict(&self, key: &LockKey) -> Result<Holders> {
        for _ in 0..8 {
            let seen = self.holders_of(key).await?;
            let Some(first) = seen.holders.first() else { return Ok(seen) };
            let name = ("name", self.name(key));
            let evict = |statement, params| self.sessions.run(Step::new("force-release", statement), params);
            let reply = match (first.mode, first.token) {
                (Mode::Exclusive, Some(token)) => {
                    let tenure = ("tenure", Value::UInt(token.get() >> 10));
                    evict(&self.statements.evict_writer, named([name, tenure])).await?
                }
                _ => evict(&self.statements.evict_readers, named([name])).await?,
            };
            if reply.affected > 0 {
                return Ok(seen);
            }
        }
        Err(Error::new(ErrorKind::Unavailable, "force-release").detail("it changes hands too fast"))
    }

    pub(crate) async fn collect(&self, older_than: Duration) -> Result<u64> {
        let older_than = older_than.max(Duration::from_secs(1));
        Ok(self.bury(older_than).await? + self.collect_keys(older_than).await?)
    }

    /// Rows of readers that died, and that no writer had a reason to evict.
    async fn bury(&self, older_than: Duration) -> Result<u64> {
        let age = Value::UInt(u64::try_from(older_than.as_micros()).unwrap_or(u64::MAX >> 8));
        let (from, to) = self.namespace.range_of("");
        let (mut after, mut buried) = (Vec::new(), 0);
        loop {
            let range = [("from", from.clone()), ("to", to.clone()), ("after", after)];
            let [from, to, after_name] = range.map(|(name, value)| (name, Value::Bytes(value)));
            let params = named([from, to, after_name, ("age", age.clone())]);
            let step = Step::new("collect", &self.statements.dead_readers).repeatable();
            let dead = self.sessions.run(step, params).await?;
            let Some(last) = dead.rows.last() else { return Ok(buried) };
            after = Columns::of(last, "collect").take()?;
            let before = buried;
            for row in &dead.rows {
                let mut columns = Columns::of(row, "collect");
                let (name, owner): (Vec<u8>, Vec<u8>) = (columns.take()?, columns.take()?);
                let params = named([("name", Value::Bytes(name)), ("owner", Value::Bytes(owner))]);
                let step = Step::new("collect", &self.statements.bury_reader).repeatable();
                buried += self.sessions.run(step, params).await?.affected;
            }
            if buried == before {
                // Somebody else buries them.
                return Ok(buried);
            }
        }
    }

    async fn collect_keys(&self, older_than: Duration) -> Result<u64> {
        let age = Value::UInt(u64::try_from(older_than.as_millis()).unwrap_or(u64::MAX >> 8));
        let (from, to) = self.namespace.range_of("");
        let (mut after, mut collected) = (Vec::new(), 0);
        loop {
            let range = [("from", from.clone()), ("to", to.clone()), ("after", after)];
            let [from, to, after_name] = range.map(|(name, value)| (name, Value::Bytes(value)));
            let params = named([from, to, after_name, ("age", age.clone())]);
            let idle = self.sessions.run(Step::new("collect", &self.statements.idle).repeatable(), params).await?;
            let Some(last) = idle.rows.last() else { return Ok(collected) };
            after = Columns::of(last, "collect").take()?;
            for row in &idle.rows {
                let name: Vec<u8> = Columns::of(row, "collect").take()?;
                let params = named([("name", Value::Bytes(name)), ("age", age.clone())]);
                let step = Step::new("collect", &self.statements.collect).repeatable();
                collected += self.sessions.run(step, params).await?.affected;
            }
        }
    }
}
