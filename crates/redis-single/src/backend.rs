use std::slice;
use std::time::Duration;

use async_trait::async_trait;
use futures::future::{join, join_all};
use leasehold_core::{
    Attempt, Backend, Capabilities, Capability, Claim, Cursor, Error, ErrorKind, GrantRef, Holder, Holders,
    LeaseStatus, LockKey, Mode, Notifications, OwnerId, Page, Renewal, Result,
};
use leasehold_redis::{
    CHANNEL, Confirmation, Connection, DRAW, Entry, FORCE, GroupCommit, INSPECT, KeyNames, Lease, Metadata, Names,
    Namespace, Reply, Script, Signals, Step, Steps, Words, lease, millis, number, trouble,
};

pub(crate) const NAME: &str = "redis-single";

/// The parts of a key's names, see the README.
const LOCK: &str = "lock";
const FENCE: &str = "fence";
const LINE: &str = "line";
const FORCED: &str = "forced";

const LINE_LUA: &str = include_str!("lua/line.lua");
static CLAIM: Step = Step::new("claim", 3, 5, &[DRAW, LINE_LUA, include_str!("lua/claim.lua")]);
static RELEASE: Step = Step::new("release", 3, 2, &[DRAW, LINE_LUA, include_str!("lua/release.lua")]);
static STEPS: Steps = Steps::new(&[&CLAIM, &RELEASE]);
static RENEW: Script = Script::new(include_str!("lua/renew.lua"));
static TAKE_OVER: Script = Script::new(include_str!("lua/take_over.lua"));

/// As in `line.lua`: who waits there asks for what it is granted.
const NO_INBOX: &str = "-";

/// The longest lease that a grant out of the line begins with, as in `line.lua`: a waiter that died without a trace keeps
/// the others for no longer.
const LONGEST_FIRST_LEASE: Duration = Duration::from_secs(3);

/// Whether waiters queue in Redis, and whether what a message says of a grant is believed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Line {
    Off,
    Trusted,
    Verified,
}

impl Line {
    pub(crate) fn of(queue: bool, verify: bool) -> Self {
        match (queue, verify) {
            (false, _) => Self::Off,
            (true, false) => Self::Trusted,
            (true, true) => Self::Verified,
        }
    }
}

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
    queues: bool,
}

impl RedisSingleBackend {
    pub(crate) fn new(
        connection: Connection,
        namespace: &Namespace,
        fence_retention: Duration,
        confirmation: Option<Confirmation>,
        group_commit: bool,
        line: Line,
    ) -> Self {
        let names = Names::new(namespace);
        // What is confirmed is what this connection wrote, and a grant out of the line is written by another.
        let queues = line != Line::Off && confirmation.is_none();
        let inbox = || Signals::with_inbox(&connection, &names, LOCK, line == Line::Trusted);
        let signals = if queues { inbox() } else { Signals::new(&connection, &names) };
        let commits = GroupCommit::new(&connection, &STEPS, group_commit);
        Self { connection, commits, names, signals, fence_retention, confirmation, queues }
    }

    /// Where this claim will hear of a grant out of the line, as in `line.lua`; empty if it takes no place there.
    fn inbox(&self, claim: &Claim) -> String {
        match self.signals.inbox() {
            _ if !self.queues || !claim.waits => String::new(),
            None => NO_INBOX.to_owned(),
            // A node of a Cluster knows only who listens there.
            Some(inbox) if self.connection.is_clustered() => format!("?{inbox}"),
            Some(inbox) => format!("!{inbox}"),
        }
    }

    /// What it promises beyond mutual exclusion, before anything is connected.
    pub fn claims() -> Capabilities {
        Capabilities::new(NAME)
            .with(Capability::Lease)
            .with(Capability::Fencing)
            .with(Capability::Wakeup)
            .with(Capability::Queue)
            .with(Capability::CrossProcess)
            .with(Capability::CrossHost)
            .with(Capability::ForceNotice)
            .with(Capability::LocalHandoff)
            .with(Capability::Detach)
            .without(Capability::Shared, "one exclusive holder per key; see mysql-rw or file for readers")
            .without(Capability::WriterIntent, "there are no readers to hold back")
    }

    /// Renews grants that may share a script.
    async fn renew_batch(&self, renewals: &[Renewal], within: Duration) -> Vec<Result<LeaseStatus>> {
        let locks = renewals.iter().map(|renewal| self.names.of(&renewal.grant.key));
        let words = locks.fold(Words::new(), |words, names| words.name(&names, LOCK));
        let number = |grant: &GrantRef| grant.epoch.unwrap_or_default();
        let leases = renewals.iter().map(|renewal| (renewal.grant.owner, number(&renewal.grant), renewal.ttl));
        let words = words.leases(leases);
        match self.connection.ask(&RENEW, renewals.len(), words, Some(within)).await {
            Ok(reply) if *reply.words() == ["held"] => renewals.iter().map(|_| Ok(LeaseStatus::Held)).collect(),
            Ok(reply) => {
                let answers = reply.each_of(renewals.len());
                join_all(answers.iter().zip(renewals).map(|(answer, renewal)| self.held(answer, &renewal.grant))).await
            }
            Err(error) => renewals.iter().map(|_| Err(error.retell())).collect(),
        }
    }

    async fn let_go(&self, names: &KeyNames, owner: OwnerId) -> Result<Reply> {
        let words = Words::new().name(names, LOCK).name(names, FENCE).name(names, LINE);
        let reply = self.commits.run(&RELEASE, words.owner(owner).name(names, CHANNEL), None).await?;
        self.signals.released(&reply.words());
        Ok(reply)
    }

    async fn held(&self, answer: &Reply, grant: &GrantRef) -> Result<LeaseStatus> {
        match *answer.words() {
            ["held", ..] => Ok(LeaseStatus::Held),
            ["gone"] => Ok(self.what_became_of(grant).await),
            ref words => Err(trouble(&self.connection, words)),
        }
    }

    /// Apart from the step itself, so that this touches one key only: scripts on several are refused in a Cluster
    /// while a slot moves. If nobody answers, it is gone all the same.
    async fn what_became_of(&self, grant: &GrantRef) -> LeaseStatus {
        match Box::pin(self.connection.get(&self.names.of(&grant.key).part(FORCED))).await {
            Ok(Some(owner)) if owner == grant.owner.to_hex() => LeaseStatus::ForceReleased,
            _ => LeaseStatus::NotHeld,
        }
    }

    /// Reads what a script says of one key.
    fn holders(&self, key: &LockKey, words: &[&str]) -> Result<Holders> {
        let holders = match *words {
            ["free"] => Vec::new(),
            ["held", entry, left, ..] => {
                let Some(left) = lease(left) else { return Err(trouble(&self.connection, &[])) };
                let entry = Entry::read(entry);
                let mut holder = entry.map_or_else(|| Holder::new(Mode::Exclusive), |entry| entry.to_holder());
                holder.remaining = left.remaining();
                vec![holder]
            }
            _ => return Err(trouble(&self.connection, words)),
        };
        Ok(Holders { key: key.clone(), holders })
    }

    async fn inspect_all(&self, keys: &[LockKey]) -> Result<Vec<Reply>> {
        self.connection.inspect(&INSPECT, keys.iter().map(|key| self.names.of(key).part(LOCK)).collect()).await
    }
}

#[async_trait]
impl Backend for RedisSingleBackend {
    fn capabilities(&self) -> Capabilities {
        let claims = Self::claims();
        if self.queues { claims } else { claims.without(Capability::Queue, "switched off, or replicas confirm grants") }
    }

    async fn try_acquire(&self, claim: &Claim) -> Result<Attempt> {
        if claim.mode == Mode::Shared {
            return Err(Error::new(ErrorKind::Unsupported, "acquire"));
        }
        let (names, inbox) = (self.names.of(&claim.key), self.inbox(claim));
        let words = Words::new()
            .name(&names, LOCK)
            .name(&names, FENCE)
            .name(&names, LINE)
            .owner(claim.owner)
            .millis(claim.ttl)
            .millis(self.fence_retention)
            .text(&Metadata::of(claim).tail())
            .text(&inbox);
        let reply = self.commits.run(&CLAIM, words, None).await?;
        let refused =
            |told: String| Err(Error::new(ErrorKind::Backend, "acquire").detail(self.connection.quote(&told)));
        match *reply.words() {
            ["granted", epoch] => match (number(epoch), self.confirmation) {
                (Some(epoch), None) => Ok(Attempt::Granted { epoch: Some(epoch) }),
                (Some(epoch), Some(confirmation)) => {
                    let name = names.part(LOCK);
                    let grant = claim.grant(Some(epoch));
                    let give_back = self.release(&grant);
                    Box::pin(confirmation.confirm(&self.connection, &name, epoch, give_back)).await
                }
                (None, _) => refused(format!("the entry of {} has lost its token", claim.key)),
            },
            ["busy", left] => {
                let left = lease(left).and_then(Lease::remaining).ok_or_else(|| trouble(&self.connection, &[]))?;
                Ok(Attempt::Busy { retry_in: Some(left) })
            }
            ["queued", left, numbers] => {
                queued(claim, left, numbers, &inbox).ok_or_else(|| trouble(&self.connection, &[]))
            }
            ["endless", key] => refused(format!(
                "the entry `{key}` never expires, so Leasehold did not write it; force-release frees it"
            )),
            ["spent", key] => refused(format!("the counter `{key}` is beyond 2^53; delete it")),
            ref words => Err(trouble(&self.connection, words)),
        }
    }

    async fn renew(&self, renewals: &[Renewal], within: Duration) -> Vec<Result<LeaseStatus>> {
        let batches = renewals.chunks(self.connection.keys_in_a_script());
        let answers =
            join_all(batches.map(|batch| self.renew_batch(batch, within))).await.into_iter().flatten().collect();
        let Some(confirmation) = self.confirmation else { return answers };
        let names = renewals.iter().map(|renewal| self.names.of(&renewal.grant.key).part(LOCK)).collect();
        confirmation.confirm_renewals(within, &self.connection, names, answers).await
    }

    async fn release(&self, grant: &GrantRef) -> Result<LeaseStatus> {
        let names = self.names.of(&grant.key);
        let reply = self.let_go(&names, grant.owner).await?;
        self.held(&reply, grant).await
    }

    async fn take_over(&self, grant: &GrantRef, new_owner: OwnerId, ttl: Duration) -> Result<LeaseStatus> {
        let lock = self.names.of(&grant.key).part(LOCK);
        let number = grant.epoch.map_or_else(|| "-".to_owned(), |number| number.to_string());
        let arguments = [grant.owner.to_hex(), number, new_owner.to_hex(), millis(ttl)];
        let reply = self.connection.run(&TAKE_OVER, [lock.clone()], arguments, None).await?;
        let held = self.held(&reply, grant).await;
        let Some(confirmation) = self.confirmation else { return held };
        let confirmed = confirmation.confirm_renewals(ttl, &self.connection, vec![lock], vec![held]).await.pop();
        // A replica that does not have it would let the old owner go on, or be taken over once more.
        let unknown = |error| Error::new(ErrorKind::Indeterminate, "attach").caused_by(error);
        confirmed.unwrap_or(Ok(LeaseStatus::NotHeld)).map_err(unknown)
    }

    async fn inspect(&self, key: &LockKey) -> Result<Holders> {
        let seen = self.inspect_all(slice::from_ref(key)).await?;
        self.holders(key, &seen.first().map(Reply::words).unwrap_or_default())
    }

    async fn list(&self, prefix: &str, after: Option<&Cursor>) -> Result<Page> {
        let (keys, next) = self.connection.keys(&self.names, LOCK, prefix, after).await?;
        let mut page = Page { keys: Vec::new(), next };
        for (key, seen) in keys.iter().zip(self.inspect_all(&keys).await?) {
            // Freed since the scan, or not ours: not a held key either way.
            if !matches!(seen.words()[..], ["free" | "foreign", ..]) {
                page.keys.push(self.holders(key, &seen.words())?);
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
        // Whoever comes to a free key serves the first in line. If nobody did, those in line would, when they ask again.
        let _ = self.let_go(&names, OwnerId::random()).await;
        self.signals.forced(&reply.words());
        self.holders(key, &reply.words())
    }

    fn notifications(&self) -> Option<&dyn Notifications> {
        Some(&self.signals)
    }

    fn answers_within(&self) -> Duration {
        self.connection.command_timeout()
    }

    async fn close(&self) {
        join(self.signals.close(), self.connection.close()).await;
    }
}

/// `None`: nothing that a script says.
fn queued(claim: &Claim, left: &str, numbers: &str, inbox: &str) -> Option<Attempt> {
    let (holder, latest) = numbers.split_once(' ').filter(|(holder, _)| *holder == "-" || is_digits(holder))?;
    let (left, latest) = (lease(left)?.remaining()?, latest.parse::<i64>().ok()?);
    let lease = claim.ttl.min(LONGEST_FIRST_LEASE);
    Some(Attempt::Queued {
        epoch_of_holder: holder.parse().ok(),
        // Beyond all numbers, because somebody wrote one into the entry: then none is believed.
        latest_epoch: Some(latest.try_into().unwrap_or(0)),
        // Three times within its first lease, and when the lease in the way runs out.
        retry_in: (lease / 3).min(left + Duration::from_millis(1)),
        told: inbox != NO_INBOX,
        lease,
    })
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}
