use std::error::Error as _;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::future::join_all;
use leasehold_core::{
    Attempt, Backend, Capabilities, Capability, Claim, Cursor, Error, ErrorKind, GrantRef, Held, Holders, LockKey,
    Mode, Page, Renewal, Result, Wakeups,
};
use leasehold_redis::{CHANNEL, Script, trouble};

use crate::metadata::{Metadata, holder};
use crate::store::Store;

pub(crate) const NAME: &str = "redis-reentrant";

/// The parts of a key's names, see the README.
const LOCK: &str = "lock";
const FENCE: &str = "fence";
const FORCED: &str = "forced";

static CLAIM: Script = Script::new(include_str!("lua/claim.lua"));
static RENEW: Script = Script::new(include_str!("lua/renew.lua"));
static RELEASE: Script = Script::new(include_str!("lua/release.lua"));
static INSPECT: Script = Script::new(include_str!("lua/inspect.lua"));
static FORCE: Script = Script::new(include_str!("lua/force.lua"));

/// The store-level steps of a [`Session`](crate::Session), each one script; from
/// [`RedisReentrantBuilder::backend`](crate::RedisReentrantBuilder::backend).
///
/// The owner in the store is the session; the owner id of a claim names one level of it.
pub struct SessionBackend {
    store: Arc<Store>,
    id: Arc<str>,
}

impl SessionBackend {
    pub(crate) fn new(store: Arc<Store>, id: Arc<str>) -> Self {
        Self { store, id }
    }

    /// What it promises beyond mutual exclusion, before anything is connected.
    pub fn claims() -> Capabilities {
        Capabilities::new(NAME)
            .with(Capability::Lease)
            .with(Capability::Fencing)
            .with(Capability::Wakeup)
            .with(Capability::CrossProcess)
            .with(Capability::CrossHost)
            .with(Capability::ForceNotice)
            .with(Capability::Reentrancy)
            .without(Capability::Shared, "one exclusive session per key; see mysql-rw or file for readers")
            .without(Capability::WriterIntent, "there are no readers to hold back")
            .without(Capability::HandOff, "a level belongs to its session; open a session with the same id instead")
    }

    pub(crate) fn id(&self) -> &str {
        &self.id
    }

    /// Renews grants that may share a script.
    async fn renew_batch(&self, renewals: &[Renewal]) -> Vec<Result<Held>> {
        let locks = renewals.iter().map(|renewal| self.store.names.of(&renewal.grant.key).part(LOCK));
        let each = renewals.iter().flat_map(|renewal| [tenure(&renewal.grant), millis(renewal.ttl)]);
        let arguments = std::iter::once(self.id.to_string()).chain(each);
        // Less than the third that the engine allows, so that the driver still knows that nobody waits any more.
        let limit = renewals.iter().map(|renewal| renewal.ttl / 4).min();
        match self.store.connection.run(&RENEW, locks, arguments, limit).await {
            Ok(reply) => {
                let mut words = reply.words();
                words.resize(renewals.len(), String::new());
                join_all(words.iter().zip(renewals).map(|(word, renewal)| self.held(word, &renewal.grant))).await
            }
            Err(error) => renewals.iter().map(|_| Err(copy(&error))).collect(),
        }
    }

    async fn held(&self, word: &str, grant: &GrantRef) -> Result<Held> {
        match word.split_once(' ') {
            None if word == "held" => Ok(Held::Yes),
            None if word == "gone" => Ok(self.what_became_of(grant).await),
            Some(("refused", reply)) => Err(self.store.connection.refused(reply)),
            _ => Err(self.trouble(&[word])),
        }
    }

    /// Apart from the step itself, so that this touches one key only: scripts on several are refused in a Cluster
    /// while a slot moves. If nobody answers, it is gone all the same.
    async fn what_became_of(&self, grant: &GrantRef) -> Held {
        match self.store.connection.get(&self.store.names.of(&grant.key).part(FORCED)).await {
            Ok(Some(whose)) if whose == format!("{} {}", tenure(grant), self.id) => Held::Forced,
            _ => Held::No,
        }
    }

    /// Reads what a script says of one key.
    fn holders(&self, key: &LockKey, words: &[&str]) -> Result<Holders> {
        let holders = match *words {
            ["free"] => Vec::new(),
            ["held", tenure, metadata, left] => vec![holder(tenure, metadata, left)],
            _ => return Err(self.trouble(words)),
        };
        Ok(Holders { key: key.clone(), holders })
    }

    /// What the script says of each key.
    async fn inspect_all(&self, keys: Vec<LockKey>) -> Result<Vec<(LockKey, Vec<String>)>> {
        let Store { connection, names, .. } = &*self.store;
        let locks: Vec<String> = keys.iter().map(|key| names.of(key).part(LOCK)).collect();
        let batches = locks.chunks(connection.keys_in_a_script());
        let asked = batches.map(|locks| connection.run(&INSPECT, locks.to_vec(), [], None));
        let mut seen = Vec::with_capacity(keys.len());
        for reply in join_all(asked).await {
            seen.extend(reply?.rows());
        }
        Ok(keys.into_iter().zip(seen).collect())
    }

    fn trouble(&self, words: &[&str]) -> Error {
        if let ["foreign", key, "string"] = *words {
            let whose = "is not of a session: another backend may lock there; give each a namespace of its own";
            return Error::new(ErrorKind::Backend, "ask Redis").detail(format!("the entry `{key}` {whose}"));
        }
        trouble(&self.store.connection, words)
    }

    /// Gives back a level that too few replicas have: a fail-over could forget it.
    async fn confirm(&self, claim: &Claim, tenure: u64) -> Result<Attempt> {
        let granted = Attempt::Granted { tenure: Some(tenure) };
        let Some(confirmation) = self.store.confirmation else { return Ok(granted) };
        let name = self.store.names.of(&claim.key).part(LOCK);
        let Some(short) = confirmation.shortfall(&self.store.connection, &name).await else { return Ok(granted) };
        let grant = GrantRef { key: claim.key.clone(), owner: claim.owner, mode: claim.mode, tenure: Some(tenure) };
        // If that fails too, "unknown" makes the engine go on giving it back.
        let given_back = self.release(&grant).await;
        Err(given_back.map_or_else(|error| Error::new(ErrorKind::Indeterminate, "acquire").caused_by(error), |_| short))
    }
}

#[async_trait]
impl Backend for SessionBackend {
    fn capabilities(&self) -> Capabilities {
        Self::claims()
    }

    async fn try_acquire(&self, claim: &Claim) -> Result<Attempt> {
        if claim.mode == Mode::Shared {
            return Err(Error::new(ErrorKind::Unsupported, "acquire"));
        }
        let names = self.store.names.of(&claim.key);
        let arguments = [
            self.id.to_string(),
            claim.owner.to_hex(),
            millis(claim.ttl),
            millis(self.store.fence_retention),
            self.store.max_depth.to_string(),
            Metadata::new(claim.label.as_deref(), claim.reason.as_deref()).tail(),
        ];
        let keys = [names.part(LOCK), names.part(FENCE)];
        let words = self.store.connection.run(&CLAIM, keys, arguments, None).await?.words();
        let refused = |detail| Err(Error::new(ErrorKind::Backend, "acquire").detail(detail));
        match refs(&words)[..] {
            ["granted", tenure] => match tenure.parse() {
                Ok(tenure) => self.confirm(claim, tenure).await,
                Err(_) => refused(format!("the entry of {} has lost its token", claim.key)),
            },
            ["busy", left] => Ok(Attempt::Busy { retry_in: left.parse().ok().map(Duration::from_millis) }),
            ["deep", levels] => refused(format!(
                "the session has taken the key {levels} times, and max_depth allows no more; \
                 is there a recursion without an end, or a guard that nobody drops?"
            )),
            ["endless", key] => refused(format!(
                "the entry `{key}` never expires, so Leasehold did not write it; force-release frees it"
            )),
            ["spent", key] => refused(format!("the counter `{key}` is beyond 2^53; delete it")),
            ref words => Err(self.trouble(words)),
        }
    }

    async fn renew(&self, renewals: &[Renewal]) -> Vec<Result<Held>> {
        let batches = renewals.chunks(self.store.connection.keys_in_a_script());
        join_all(batches.map(|batch| self.renew_batch(batch))).await.into_iter().flatten().collect()
    }

    async fn release(&self, grant: &GrantRef) -> Result<Held> {
        let names = self.store.names.of(&grant.key);
        let arguments = [self.id.to_string(), grant.owner.to_hex(), tenure(grant), names.part(CHANNEL)];
        let words = self.store.connection.run(&RELEASE, [names.part(LOCK)], arguments, None).await?.words();
        self.held(words.first().map_or("", String::as_str), grant).await
    }

    async fn inspect(&self, key: &LockKey) -> Result<Holders> {
        let words = self.inspect_all(vec![key.clone()]).await?.pop().map(|(_, words)| words);
        self.holders(key, &refs(&words.unwrap_or_default()))
    }

    async fn list(&self, prefix: &str, after: Option<&Cursor>) -> Result<Page> {
        let Store { connection, names, .. } = &*self.store;
        let (mut found, next) = connection.scan(&names.pattern(prefix, LOCK), after).await?;
        found.sort_unstable();
        found.dedup();
        let keys = found.iter().filter_map(|name| names.key(name, LOCK)).collect();
        let mut page = Page { keys: Vec::new(), next };
        for (key, words) in self.inspect_all(keys).await? {
            // Freed since the scan, or not ours: not a held key either way.
            if !matches!(words.first().map(String::as_str), Some("free" | "foreign")) {
                page.keys.push(self.holders(&key, &refs(&words))?);
            }
        }
        Ok(page)
    }

    async fn force_release(&self, key: &LockKey) -> Result<Holders> {
        /// How long beyond its lease a holder may come and ask what became of it.
        const GRACE: Duration = Duration::from_secs(60);
        let names = self.store.names.of(key);
        let arguments = [names.part(CHANNEL), millis(GRACE)];
        let reply = self.store.connection.run(&FORCE, [names.part(LOCK), names.part(FORCED)], arguments, None).await?;
        self.holders(key, &refs(&reply.words()))
    }

    fn wakeups(&self) -> Option<&dyn Wakeups> {
        Some(&self.store.signals)
    }
}

impl fmt::Debug for SessionBackend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Whoever knows the whole id can act as the session.
        let start: String = self.id.chars().take(6).collect();
        f.debug_struct("SessionBackend").field("id", &format!("{start}…")).field("store", &self.store).finish()
    }
}

/// Empty: not known.
fn tenure(grant: &GrantRef) -> String {
    grant.tenure.map(|tenure| tenure.to_string()).unwrap_or_default()
}

fn millis(duration: Duration) -> String {
    duration.as_millis().to_string()
}

fn refs(words: &[String]) -> Vec<&str> {
    words.iter().map(String::as_str).collect()
}

/// The same news for every grant of a batch.
fn copy(error: &Error) -> Error {
    let told = error.source().map_or_else(|| error.to_string(), ToString::to_string);
    let opening = format!("{}: {}: ", error.operation(), error.kind());
    Error::new(error.kind(), error.operation()).detail(told.strip_prefix(&opening).unwrap_or(&told))
}
