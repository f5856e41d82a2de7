use std::fmt;
use std::slice;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::future::join_all;
use leasehold_core::{
    Attempt, Backend, Capabilities, Capability, Claim, Cursor, Error, ErrorKind, FencingToken, GrantRef, Holder,
    Holders, LeaseStatus, LockKey, Mode, Notifications, Page, Renewal, Result, SessionId,
};
use leasehold_redis::{
    CHANNEL, DRAW, Lease, Metadata, Reply, Script, Step, Steps, Words, digest, lease, millis, number, trouble,
};

use crate::store::Store;

pub(crate) const NAME: &str = "redis-reentrant";

/// The parts of a key's names, see the README.
const LOCK: &str = "lock";
const FENCE: &str = "fence";
const FORCED: &str = "forced";

static CLAIM: Step = Step::new("claim", 2, 7, &[DRAW, include_str!("lua/number.lua"), include_str!("lua/claim.lua")]);
static RELEASE: Step = Step::new("release", 1, 4, &[include_str!("lua/release.lua")]);
pub(crate) static STEPS: Steps = Steps::new(&[&CLAIM, &RELEASE]);
static RENEW: Script = Script::new(include_str!("lua/renew.lua"));
static INSPECT: Script = Script::new(concat!(include_str!("lua/number.lua"), include_str!("lua/inspect.lua")));
static FORCE: Script = Script::new(concat!(include_str!("lua/number.lua"), include_str!("lua/force.lua")));

/// The store-level steps of a [`Session`](crate::Session), each one script; from
/// [`RedisReentrantBuilder::backend`](crate::RedisReentrantBuilder::backend).
///
/// The owner in the store is the session; the owner id of a claim names one level of it.
pub struct SessionBackend {
    store: Arc<Store>,
    id: Arc<str>,
    session: SessionId,
}

impl SessionBackend {
    pub(crate) fn new(store: Arc<Store>, id: Arc<str>) -> Self {
        let session = told_as(&digest(&id)).unwrap_or(SessionId(0));
        Self { store, id, session }
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
            .without(Capability::Detach, "a level belongs to its session; open a session with the same id instead")
    }

    pub(crate) fn id(&self) -> &str {
        &self.id
    }

    /// Renews grants that may share a script.
    async fn renew_batch(&self, renewals: &[Renewal], within: Duration) -> Vec<Result<LeaseStatus>> {
        let locks = renewals.iter().map(|renewal| self.store.names.of(&renewal.grant.key).part(LOCK));
        let each = renewals.iter().flat_map(|renewal| [epoch(&renewal.grant), millis(renewal.ttl)]);
        let arguments = std::iter::once(self.id.to_string()).chain(each);
        match self.store.connection.run(&RENEW, locks, arguments, Some(within)).await {
            Ok(reply) => {
                let answers = reply.each_of(renewals.len());
                join_all(answers.iter().zip(renewals).map(|(answer, renewal)| self.held(answer, &renewal.grant))).await
            }
            Err(error) => renewals.iter().map(|_| Err(error.retell())).collect(),
        }
    }

    async fn held(&self, answer: &Reply, grant: &GrantRef) -> Result<LeaseStatus> {
        match *answer.words() {
            ["held", ..] => Ok(LeaseStatus::Held),
            ["gone"] => Ok(self.what_became_of(grant).await),
            ref words => Err(self.trouble(words)),
        }
    }

    /// Apart from the step itself, so that this touches one key only: scripts on several are refused in a Cluster
    /// while a slot moves. If nobody answers, it is gone all the same.
    async fn what_became_of(&self, grant: &GrantRef) -> LeaseStatus {
        match Box::pin(self.store.connection.get(&self.store.names.of(&grant.key).part(FORCED))).await {
            Ok(Some(whose)) if whose == format!("{} {}", epoch(grant), self.id) => LeaseStatus::ForceReleased,
            _ => LeaseStatus::NotHeld,
        }
    }

    /// Reads what a script says of one key.
    fn holders(&self, key: &LockKey, words: &[&str]) -> Result<Holders> {
        let holders = match *words {
            ["free"] => Vec::new(),
            ["held", epoch, metadata, left, ..] => match holder(epoch, metadata, left) {
                Some(holder) => vec![holder],
                None => return Err(self.trouble(&[])),
            },
            _ => return Err(self.trouble(words)),
        };
        Ok(Holders { key: key.clone(), holders })
    }

    async fn inspect_all(&self, keys: &[LockKey]) -> Result<Vec<Reply>> {
        let names = keys.iter().map(|key| self.store.names.of(key).part(LOCK)).collect();
        self.store.connection.inspect(&INSPECT, names).await
    }

    fn trouble(&self, words: &[&str]) -> Error {
        if let ["foreign", key, "string"] = *words {
            let whose = "is not of a session: another backend may lock there; give each a namespace of its own";
            let told = self.store.connection.quote(&format!("the entry `{key}` {whose}"));
            return Error::new(ErrorKind::Backend, "ask Redis").detail(told);
        }
        trouble(&self.store.connection, words)
    }
}

#[async_trait]
impl Backend for SessionBackend {
    fn capabilities(&self) -> Capabilities {
        Self::claims()
    }

    fn session(&self) -> Option<SessionId> {
        Some(self.session)
    }

    async fn try_acquire(&self, claim: &Claim) -> Result<Attempt> {
        if claim.mode == Mode::Shared {
            return Err(Error::new(ErrorKind::Unsupported, "acquire"));
        }
        let names = self.store.names.of(&claim.key);
        let words = Words::new()
            .name(&names, LOCK)
            .name(&names, FENCE)
            .text(&self.id)
            .owner(claim.owner)
            .millis(claim.ttl)
            .millis(self.store.fence_retention)
            .text(&self.store.max_depth.to_string())
            .text(&claim.lost.map(|lost| lost.to_string()).unwrap_or_default())
            .text(&Metadata::of(claim).tail());
        let reply = self.store.commits.run(&CLAIM, words, None).await?;
        let refused =
            |told: String| Err(Error::new(ErrorKind::Backend, "acquire").detail(self.store.connection.quote(&told)));
        match *reply.words() {
            ["granted", epoch] => match (number(epoch), self.store.confirmation) {
                (Some(epoch), None) => Ok(Attempt::Granted { epoch: Some(epoch) }),
                (Some(epoch), Some(confirmation)) => {
                    let name = names.part(LOCK);
                    let grant = claim.grant(Some(epoch));
                    let give_back = self.release(&grant);
                    Box::pin(confirmation.confirm(&self.store.connection, &name, epoch, give_back)).await
                }
                (None, _) => refused(format!("the entry of {} has lost its token", claim.key)),
            },
            ["busy", left, by] => match (lease(left), told_as(by)) {
                (Some(Lease::Ends(left)), Some(session)) => Ok(Attempt::HeldBy { session, retry_in: Some(left) }),
                _ => Err(self.trouble(&[])),
            },
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

    async fn renew(&self, renewals: &[Renewal], within: Duration) -> Vec<Result<LeaseStatus>> {
        let batches = renewals.chunks(self.store.connection.keys_in_a_script());
        let answers =
            join_all(batches.map(|batch| self.renew_batch(batch, within))).await.into_iter().flatten().collect();
        let Some(confirmation) = self.store.confirmation else { return answers };
        let names = renewals.iter().map(|renewal| self.store.names.of(&renewal.grant.key).part(LOCK)).collect();
        confirmation.confirm_renewals(within, &self.store.connection, names, answers).await
    }

    async fn release(&self, grant: &GrantRef) -> Result<LeaseStatus> {
        let names = self.store.names.of(&grant.key);
        let words =
            Words::new().name(&names, LOCK).text(&self.id).owner(grant.owner).text(&epoch(grant)).name(&names, CHANNEL);
        let reply = self.store.commits.run(&RELEASE, words, None).await?;
        self.store.signals.released(&reply.words());
        self.held(&reply, grant).await
    }

    async fn inspect(&self, key: &LockKey) -> Result<Holders> {
        let seen = self.inspect_all(slice::from_ref(key)).await?;
        self.holders(key, &seen.first().map(Reply::words).unwrap_or_default())
    }

    async fn list(&self, prefix: &str, after: Option<&Cursor>) -> Result<Page> {
        let (keys, next) = self.store.connection.keys(&self.store.names, LOCK, prefix, after).await?;
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
        let names = self.store.names.of(key);
        let arguments = [names.part(CHANNEL), millis(GRACE)];
        let reply = self.store.connection.run(&FORCE, [names.part(LOCK), names.part(FORCED)], arguments, None).await?;
        let words = reply.words();
        if let ["held", _, _, _, why @ ..] = &words[..] {
            self.store.signals.released(&[&["held"], why].concat());
        }
        self.holders(key, &words)
    }

    fn notifications(&self) -> Option<&dyn Notifications> {
        Some(&self.store.signals)
    }

    fn answers_within(&self) -> Duration {
        self.store.connection.command_timeout()
    }
}

impl fmt::Debug for SessionBackend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Whoever knows the whole id can act as the session.
        let start: String = self.id.chars().take(6).collect();
        f.debug_struct("SessionBackend")
            .field("id", &format!("{start}…"))
            .field("store", &self.store)
            .finish_non_exhaustive()
    }
}

/// From the start of the digest of its id. `None`: it is none.
fn told_as(digest: &str) -> Option<SessionId> {
    u64::from_str_radix(digest.get(..16)?, 16).ok().map(SessionId)
}

/// Empty: not known.
fn epoch(grant: &GrantRef) -> String {
    grant.epoch.map(|epoch| epoch.to_string()).unwrap_or_default()
}

/// What the fields of a lock's hash, as text, say of its holder. `None`: they are none that a script tells.
fn holder(epoch: &str, metadata: &str, left: &str) -> Option<Holder> {
    let mut holder = Holder::new(Mode::Exclusive);
    holder.token = Some(FencingToken::of_epoch(number(epoch)?));
    holder.remaining = lease(left)?.remaining();
    Metadata::read(metadata).describe(&mut holder);
    Some(holder)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn no_text_makes_it_panic(epoch in ".*", metadata in ".*", left in ".*", number in any::<u64>()) {
            let _ = holder(&epoch, &metadata, &left);
            let _ = holder(&number.to_string(), &format!("{{{metadata}"), &number.to_string());
        }
    }

    #[test]
    fn a_lease_that_never_ends_has_no_remaining_time() {
        let read = holder("7", r#"{"since":1,"host":"a","label":"b"}"#, "-1").unwrap();
        assert_eq!((read.remaining, read.label.as_deref()), (None, Some("b")));
        assert_eq!(read.token, Some(FencingToken::of_epoch(7)));
    }

    #[test]
    fn a_holder_with_a_number_or_a_lease_that_no_script_tells_is_none() {
        for (epoch, left) in [("x", "7"), ("", "7"), ("9007199254740992", "7"), ("7", "x"), ("7", ""), ("7", "-2")] {
            assert!(holder(epoch, "{}", left).is_none(), "{epoch} {left}");
        }
        for odd in ["", "0123456789abcde", "0123456789abcdex", "ééééééééé"] {
            assert_eq!(told_as(odd), None, "{odd}");
        }
    }
}
