use std::time::Duration;

use async_trait::async_trait;
use futures::future::join_all;
use leasehold_core::{
    Attempt, Backend, Capabilities, Capability, Claim, Cursor, Error, ErrorKind, GrantRef, Held, Holder, Holders,
    LockKey, Mode, Page, Renewal, Result, Wakeups,
};
use leasehold_redis::{
    CHANNEL, Confirmation, Connection, GroupCommit, Names, Namespace, Script, Signals, Step, Steps, Words, trouble,
};

use crate::entry::{Entry, Metadata};

pub(crate) const NAME: &str = "redis-single";

/// The parts of a key's names, see the README.
const LOCK: &str = "lock";
const FENCE: &str = "fence";
const FORCED: &str = "forced";

static CLAIM: Step = Step::new("claim", 2, 4, include_str!("lua/claim.lua"));
static RELEASE: Step = Step::new("release", 1, 2, include_str!("lua/release.lua"));
static STEPS: Steps = Steps::new(&[&CLAIM, &RELEASE]);
static RENEW: Script = Script::new(include_str!("lua/renew.lua"));
static INSPECT: Script = Script::new(include_str!("lua/inspect.lua"));
static FORCE: Script = Script::new(include_str!("lua/force.lua"));

/// The store-level steps of [`RedisSingle`](crate::RedisSingle), each one script; from
/// [`RedisSingleBuilder::backend`](crate::RedisSingleBuilder::backend).
#[derive(Debug)]
pub struct RedisSingleBackend {
    connection: Connection,
    commits: GroupCommit,
    names: Names,
    signals: Signals,
    fence_retention: Duration,
    confirmation: Option<Confirmation>,
}

impl RedisSingleBackend {
    pub(crate) fn new(
        connection: Connection,
        namespace: &Namespace,
        fence_retention: Duration,
        confirmation: Option<Confirmation>,
        group_commit: bool,
    ) -> Self {
        let names = Names::new(namespace);
        let signals = Signals::new(&connection, &names);
        let commits = GroupCommit::new(&connection, &STEPS, group_commit);
        Self { connection, commits, names, signals, fence_retention, confirmation }
    }

    /// Gives back a grant that too few replicas have: a fail-over could forget it.
    async fn confirm(&self, claim: &Claim, tenure: u64) -> Result<Attempt> {
        let granted = Attempt::Granted { tenure: Some(tenure) };
        let Some(confirmation) = self.confirmation else { return Ok(granted) };
        let name = self.names.of(&claim.key).part(LOCK);
        let Some(short) = Box::pin(confirmation.shortfall(&self.connection, &name)).await else { return Ok(granted) };
        let grant = GrantRef { key: claim.key.clone(), owner: claim.owner, mode: claim.mode, tenure: Some(tenure) };
        // If that fails too, "unknown" makes the engine go on giving it back.
        let given_back = self.release(&grant).await;
        Err(given_back.map_or_else(|error| Error::new(ErrorKind::Indeterminate, "acquire").caused_by(error), |_| short))
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
            .with(Capability::HandOver)
            .with(Capability::HandOff)
            .without(Capability::Shared, "one exclusive holder per key; see mysql-rw or file for readers")
            .without(Capability::WriterIntent, "there are no readers to hold back")
    }

    /// Renews grants that may share a script.
    async fn renew_batch(&self, renewals: &[Renewal]) -> Vec<Result<Held>> {
        let locks = renewals.iter().map(|renewal| self.names.of(&renewal.grant.key).part(LOCK));
        let arguments = renewals.iter().flat_map(|renewal| [renewal.grant.owner.to_hex(), millis(renewal.ttl)]);
        // Less than the third that the engine allows, so that the driver still knows that nobody waits any more.
        let limit = renewals.iter().map(|renewal| renewal.ttl / 4).min();
        match self.connection.run(&RENEW, locks, arguments, limit).await {
            Ok(reply) => {
                let mut words = reply.words();
                words.resize(renewals.len(), String::new());
                join_all(words.iter().zip(renewals).map(|(word, renewal)| self.held(word, &renewal.grant))).await
            }
            Err(error) => renewals.iter().map(|_| Err(error.retell())).collect(),
        }
    }

    async fn held(&self, answer: &str, grant: &GrantRef) -> Result<Held> {
        match answer {
            "held" => Ok(Held::Yes),
            "gone" => Ok(self.what_became_of(grant).await),
            _ => Err(trouble(&self.connection, &[answer])),
        }
    }

    /// Apart from the step itself, so that this touches one key only: scripts on several are refused in a Cluster
    /// while a slot moves. If nobody answers, it is gone all the same.
    async fn what_became_of(&self, grant: &GrantRef) -> Held {
        match Box::pin(self.connection.get(&self.names.of(&grant.key).part(FORCED))).await {
            Ok(Some(owner)) if owner == grant.owner.to_hex() => Held::Forced,
            _ => Held::No,
        }
    }

    /// Reads what a script says of one key.
    fn holders(&self, key: &LockKey, words: &[&str]) -> Result<Holders> {
        let holders = match *words {
            ["free"] => Vec::new(),
            ["held", entry, left] => {
                let remaining = left.parse().ok().map(Duration::from_millis);
                let unknown = Holder::new(Mode::Exclusive);
                vec![Entry::read(entry).map_or(unknown, |entry| entry.into_holder(remaining))]
            }
            _ => return Err(trouble(&self.connection, words)),
        };
        Ok(Holders { key: key.clone(), holders })
    }

    /// What the script says of each key.
    async fn inspect_all(&self, keys: Vec<LockKey>) -> Result<Vec<(LockKey, Vec<String>)>> {
        let locks: Vec<String> = keys.iter().map(|key| self.names.of(key).part(LOCK)).collect();
        let batches = locks.chunks(self.connection.keys_in_a_script());
        let asked = batches.map(|locks| self.connection.run(&INSPECT, locks.to_vec(), [], None));
        let mut seen = Vec::with_capacity(keys.len());
        for reply in join_all(asked).await {
            seen.extend(reply?.rows());
        }
        Ok(keys.into_iter().zip(seen).collect())
    }
}

#[async_trait]
impl Backend for RedisSingleBackend {
    fn capabilities(&self) -> Capabilities {
        Self::claims()
    }

    async fn try_acquire(&self, claim: &Claim) -> Result<Attempt> {
        if claim.mode == Mode::Shared {
            return Err(Error::new(ErrorKind::Unsupported, "acquire"));
        }
        let names = self.names.of(&claim.key);
        let words = Words::new()
            .name(&names, LOCK)
            .name(&names, FENCE)
            .owner(claim.owner)
            .millis(claim.ttl)
            .millis(self.fence_retention)
            .text(&Metadata::new(claim.label.as_deref(), claim.reason.as_deref()).tail());
        let reply = self.commits.run(&CLAIM, words, None).await?;
        let refused = |detail| Err(Error::new(ErrorKind::Backend, "acquire").detail(detail));
        match reply.line().split_once(' ') {
            Some(("granted", tenure)) => match tenure.parse() {
                Ok(tenure) => self.confirm(claim, tenure).await,
                Err(_) => refused(format!("the entry of {} has lost its token", claim.key)),
            },
            Some(("busy", left)) => Ok(Attempt::Busy { retry_in: left.parse().ok().map(Duration::from_millis) }),
            Some(("endless", key)) => refused(format!(
                "the entry `{key}` never expires, so Leasehold did not write it; force-release frees it"
            )),
            Some(("spent", key)) => refused(format!("the counter `{key}` is beyond 2^53; delete it")),
            _ => Err(trouble(&self.connection, &[reply.line()])),
        }
    }

    async fn renew(&self, renewals: &[Renewal]) -> Vec<Result<Held>> {
        let batches = renewals.chunks(self.connection.keys_in_a_script());
        join_all(batches.map(|batch| self.renew_batch(batch))).await.into_iter().flatten().collect()
    }

    async fn release(&self, grant: &GrantRef) -> Result<Held> {
        let names = self.names.of(&grant.key);
        let words = Words::new().name(&names, LOCK).owner(grant.owner).name(&names, CHANNEL);
        let reply = self.commits.run(&RELEASE, words, None).await?;
        self.held(reply.line(), grant).await
    }

    async fn inspect(&self, key: &LockKey) -> Result<Holders> {
        let words = self.inspect_all(vec![key.clone()]).await?.pop().map(|(_, words)| words);
        self.holders(key, &refs(&words.unwrap_or_default()))
    }

    async fn list(&self, prefix: &str, after: Option<&Cursor>) -> Result<Page> {
        let (mut names, next) = self.connection.scan(&self.names.pattern(prefix, LOCK), after).await?;
        names.sort_unstable();
        names.dedup();
        let keys = names.iter().filter_map(|name| self.names.key(name, LOCK)).collect();
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
        let names = self.names.of(key);
        let arguments = [names.part(CHANNEL), millis(GRACE)];
        let reply = self.connection.run(&FORCE, [names.part(LOCK), names.part(FORCED)], arguments, None).await?;
        self.holders(key, &refs(&reply.words()))
    }

    fn wakeups(&self) -> Option<&dyn Wakeups> {
        Some(&self.signals)
    }

    async fn close(&self) {
        self.signals.close().await;
        self.connection.close().await;
    }
}

fn millis(duration: Duration) -> String {
    duration.as_millis().to_string()
}

fn refs(words: &[String]) -> Vec<&str> {
    words.iter().map(String::as_str).collect()
}
