//! What looking at keys has in common in backends on one Redis.

use std::ops::Range;
use std::slice;

use futures::future::BoxFuture;
use leasehold_core::{Cursor, Holder, Holders, LockKey, Page, Result};

use crate::leases::LOCK;
use crate::script::arguments::ScriptArguments;
use crate::script::reply::Reply;
use crate::script::source::Script;
use crate::store::Store;

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
            let holders = read(&seen.first().map(Reply::words).unwrap_or_default())?;
            Ok(Holders { key: key.clone(), holders })
        })
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
                    page.keys.push(Holders { key: key.clone(), holders: read(&seen.words())? });
                }
            }
            Ok(page)
        })
    }

    async fn look_at(&self, script: &Script, keys: &[LockKey]) -> Result<Vec<Reply>> {
        let locks = |range: Range<usize>| {
            keys[range].iter().fold(ScriptArguments::default(), |locks, key| locks.name(&self.names(key), LOCK))
        };
        self.run_for_each(script, keys.len(), &locks, None).await.into_iter().collect()
    }
}
