//! What looking at keys has in common in backends on one Redis.

use std::ops::Range;
use std::slice;

use futures::future::{BoxFuture, join};
use leasehold_core::{Cursor, Holder, Holders, LockKey, Page, Result};

use crate::keyspace::names::LOCK;
use crate::queue::QUEUE;
use crate::script::arguments::ScriptArguments;
use crate::script::reply::Reply;
use crate::script::source::Script;
use crate::store::Store;

static WAITERS: Script = Script::new(&[include_str!("lua/waiters.lua")]);

/// Reads what a script says of one key: who holds it, or the error that it is.
type Read<'a> = &'a (dyn Fn(&[&str]) -> Result<Vec<Holder>> + Sync);

impl Store {
    /// Reads who holds a key.
    ///
    /// The keys of the script are the [`LOCK`]s. It answers a list with what `read` understands, of each.
    ///
    /// # Errors
    /// As for [`run_function`](Self::run_function); what `read` answers.
    pub fn inspect<'a>(
        &'a self,
        script: &'a Script,
        key: &'a LockKey,
        read: Read<'a>,
    ) -> BoxFuture<'a, Result<Holders>> {
        Box::pin(async move {
            let seen = self.look_at(script, slice::from_ref(key)).await?;
            Ok(Holders::new(key, read(&seen.first().map(Reply::words).unwrap_or_default())?))
        })
    }

    /// Reads who holds a key, as [`inspect`](Self::inspect) does, and how many wait in its [`QUEUE`].
    ///
    /// # Errors
    /// As for [`inspect`](Self::inspect). A server that does not tell how many wait is none.
    pub fn inspect_queued<'a>(
        &'a self,
        script: &'a Script,
        key: &'a LockKey,
        read: Read<'a>,
    ) -> BoxFuture<'a, Result<Holders>> {
        Box::pin(async move {
            let (seen, waiters) = join(self.inspect(script, key, read), self.waiters(slice::from_ref(key))).await;
            let mut seen = seen?;
            seen.waiters = waiters.first().copied().flatten();
            Ok(seen)
        })
    }

    /// Reads one page of the held keys, as [`list`](Self::list) does, and how many wait in the [`QUEUE`] of each.
    ///
    /// # Errors
    /// As for [`inspect_queued`](Self::inspect_queued).
    pub fn list_queued<'a>(
        &'a self,
        script: &'a Script,
        prefix: &'a str,
        after: Option<&'a Cursor>,
        read: Read<'a>,
    ) -> BoxFuture<'a, Result<Page>> {
        Box::pin(async move {
            let mut page = self.list(script, prefix, after, read).await?;
            let keys: Vec<_> = page.keys.iter().map(|held| held.key.clone()).collect();
            let counted = self.waiters(&keys).await;
            page.keys.iter_mut().zip(counted).for_each(|(held, waiters)| held.waiters = waiters);
            Ok(page)
        })
    }

    /// How many wait for each key. Apart from the script that reads the locks: a Cluster refuses scripts on several names while
    /// a slot moves, and a server may refuse this one alone.
    async fn waiters(&self, keys: &[LockKey]) -> Vec<Option<u64>> {
        let counted = self.ask_each(&WAITERS, QUEUE, keys).await;
        counted.into_iter().map(|count| count.ok()?.words().first()?.parse().ok()).collect()
    }

    /// Reads one page of the held keys that start with `prefix`, with the script of [`inspect`](Self::inspect), which answers `free`,
    /// or `foreign` and what is there, of what is not a held key.
    ///
    /// # Errors
    /// As for [`inspect`](Self::inspect).
    pub fn list<'a>(
        &'a self,
        script: &'a Script,
        prefix: &'a str,
        after: Option<&'a Cursor>,
        read: Read<'a>,
    ) -> BoxFuture<'a, Result<Page>> {
        Box::pin(async move {
            let (keys, next) = self.keys(LOCK, prefix, after).await?;
            let mut page = Page { keys: Vec::new(), next };
            for (key, seen) in keys.iter().zip(self.look_at(script, &keys).await?) {
                // Freed since the scan, or not ours: not a held key either way.
                if !matches!(seen.words()[..], ["free" | "foreign", ..]) {
                    page.keys.push(Holders::new(key, read(&seen.words())?));
                }
            }
            Ok(page)
        })
    }

    async fn look_at(&self, script: &Script, keys: &[LockKey]) -> Result<Vec<Reply>> {
        self.ask_each(script, LOCK, keys).await.into_iter().collect()
    }

    /// Asks a script about this part of the names of each key.
    async fn ask_each(&self, script: &Script, part: &str, keys: &[LockKey]) -> Vec<Result<Reply>> {
        let names = |range: Range<usize>| {
            keys[range].iter().fold(ScriptArguments::default(), |names, key| names.name(&self.names(key), part))
        };
        self.run_for_each(script, keys.len(), &names, None).await
    }
}
