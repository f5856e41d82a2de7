//! The steps of a backend, as lines: `[number, step]` from the client, and `[number, reply]` from the agent. What the store tells of a
//! subscription comes under the number of the step that subscribed.

use std::collections::BTreeSet;
use std::time::{Duration, SystemTime};

use leasehold_core::{
    Attempt, Backend, Capabilities, Capability, Claim, Cursor, Error, ErrorKind, FencingToken, GrantRef, Holder,
    Holders, LeaseStatus, LockKey, Mode, Notification, OwnerId, Page, Renewal, SessionId,
};
use serde::{Deserialize, Serialize};

use crate::protocol::{Refusal, kind_name, kind_named};

/// The version of the steps. An agent serves this one alone.
pub(crate) const STEPS: u32 = 1;

/// The longest line of a client, in bytes: a batch of renewals.
pub(crate) const LONGEST_STEP: usize = 1024 * 1024;

/// The longest line of an agent, in bytes: a page of a list.
pub(crate) const LONGEST_REPLY: usize = 64 * LONGEST_STEP;

/// The most renewals of one line.
pub(crate) const BATCH: usize = 250;

/// The first line of the agent: what the store behind it is.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub(crate) struct Served {
    pub(crate) version: u32,
    pub(crate) store: String,
    /// Where it is, if the agent was told: a client that is connected knows another one by it.
    place: Option<String>,
    capabilities: BTreeSet<String>,
    shortest_ttl: Duration,
    lease_granularity: Duration,
    pub(crate) answers_within: Duration,
    pub(crate) renewal_batch: usize,
}

impl Served {
    pub(crate) fn of(backend: &dyn Backend, place: Option<&str>) -> Self {
        let store = backend.capabilities();
        let claimed = Capability::ALL.iter().filter(|capability| store.has(**capability));
        Self {
            version: STEPS,
            store: store.backend().to_owned(),
            place: place.map(str::to_owned),
            capabilities: claimed.map(|capability| capability.as_str().to_owned()).collect(),
            shortest_ttl: store.shortest_ttl(),
            lease_granularity: store.lease_granularity(),
            answers_within: backend.answers_within(),
            renewal_batch: backend.renewal_batch().min(BATCH),
        }
    }

    /// Of these claims, which are those of every agent, the ones that the store behind this agent makes, too.
    pub(crate) fn narrow(&self, claims: &Capabilities) -> Capabilities {
        const WHY: &str = "the store behind the agent does not promise it";
        // What an agent gives whatever is behind it.
        let given = [Capability::CrossProcess, Capability::LocalHandoff];
        let has =
            |capability: &Capability| given.contains(capability) || self.capabilities.contains(capability.as_str());
        let missing = Capability::ALL.iter().filter(|capability| claims.has(**capability) && !has(capability));
        let narrowed = missing.fold(claims.clone(), |narrowed, capability| narrowed.without(*capability, WHY));
        narrowed.with_shortest_ttl(self.shortest_ttl).with_lease_granularity(self.lease_granularity)
    }
}

/// One step.
#[derive(Debug, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Step {
    TryAcquire(#[serde(with = "ClaimFields")] Claim),
    Renew {
        renewals: Vec<RenewalFields>,
        within: Duration,
    },
    Release(#[serde(with = "GrantFields")] GrantRef),
    Downgrade {
        #[serde(with = "GrantFields")]
        writer: GrantRef,
        #[serde(with = "ClaimFields")]
        claim: Claim,
    },
    Inspect(#[serde(with = "key")] LockKey),
    List {
        prefix: String,
        after: Option<String>,
    },
    ForceRelease {
        #[serde(with = "key")]
        key: LockKey,
        only: Option<u64>,
    },
    Subscribe(#[serde(with = "key")] LockKey),
    /// Ends the subscription with this number. It has no reply.
    Unsubscribe(u64),
}

/// What the agent answers to a step, and what the store tells of a key.
#[derive(Debug, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Reply {
    Attempt(#[serde(with = "AttemptFields")] Attempt),
    Statuses(Vec<Result<Status, Failure>>),
    Status(Status),
    Holders(HoldersFields),
    Page { keys: Vec<HoldersFields>, next: Option<String> },
    Subscribed,
    Notified(#[serde(with = "NotificationFields")] Notification),
    Failed(Failure),
}

#[derive(Deserialize, Serialize)]
#[serde(remote = "Claim")]
struct ClaimFields {
    #[serde(with = "key")]
    key: LockKey,
    #[serde(with = "owner")]
    owner: OwnerId,
    #[serde(with = "ModeName")]
    mode: Mode,
    ttl: Duration,
    waits: bool,
    #[serde(default, with = "text")]
    label: Option<std::sync::Arc<str>>,
    #[serde(default, with = "text")]
    reason: Option<std::sync::Arc<str>>,
    lost: Option<u64>,
}

#[derive(Deserialize, Serialize)]
#[serde(remote = "GrantRef")]
struct GrantFields {
    #[serde(with = "key")]
    key: LockKey,
    #[serde(with = "owner")]
    owner: OwnerId,
    #[serde(with = "ModeName")]
    mode: Mode,
    epoch: Option<u64>,
}

#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct RenewalFields {
    #[serde(with = "GrantFields")]
    grant: GrantRef,
    ttl: Duration,
}

impl From<&Renewal> for RenewalFields {
    fn from(renewal: &Renewal) -> Self {
        Self { grant: renewal.grant.clone(), ttl: renewal.ttl }
    }
}

impl From<RenewalFields> for Renewal {
    fn from(fields: RenewalFields) -> Self {
        Self { grant: fields.grant, ttl: fields.ttl }
    }
}

#[derive(Deserialize, Serialize)]
#[serde(remote = "Mode", rename_all = "snake_case")]
enum ModeName {
    Exclusive,
    Shared,
}

#[derive(Deserialize, Serialize)]
#[serde(remote = "SessionId")]
struct Session(u64);

#[derive(Deserialize, Serialize)]
#[serde(remote = "Attempt", rename_all = "snake_case")]
enum AttemptFields {
    Granted {
        epoch: Option<u64>,
    },
    Busy {
        retry_in: Option<Duration>,
    },
    HeldBy {
        #[serde(with = "Session")]
        session: SessionId,
        retry_in: Option<Duration>,
    },
    Queued {
        epoch_of_holder: Option<u64>,
        latest_epoch: Option<u64>,
        retry_in: Duration,
        notifies: bool,
        lease: Duration,
    },
}

#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub(crate) struct Status(#[serde(with = "StatusName")] pub(crate) LeaseStatus);

#[derive(Deserialize, Serialize)]
#[serde(remote = "LeaseStatus", rename_all = "snake_case")]
enum StatusName {
    Held,
    NotHeld,
    ForceReleased,
}

#[derive(Deserialize, Serialize)]
#[serde(remote = "Notification", rename_all = "snake_case")]
enum NotificationFields {
    Freed,
    Granted {
        #[serde(with = "owner")]
        owner: OwnerId,
        epoch: Option<u64>,
    },
    Ended,
}

#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct HoldersFields {
    #[serde(with = "key")]
    key: LockKey,
    holders: Vec<HolderFields>,
    waiters: Option<u64>,
}

#[derive(Debug, Deserialize, Serialize)]
struct HolderFields {
    #[serde(with = "ModeName")]
    mode: Mode,
    token: Option<u64>,
    remaining: Option<Duration>,
    granted_at: Option<SystemTime>,
    label: Option<String>,
    reason: Option<String>,
}

impl From<Holders> for HoldersFields {
    fn from(holders: Holders) -> Self {
        let fields = |holder: Holder| HolderFields {
            mode: holder.mode,
            token: holder.token.map(FencingToken::get),
            remaining: holder.remaining,
            granted_at: holder.granted_at,
            label: holder.label,
            reason: holder.reason,
        };
        Self { key: holders.key, holders: holders.holders.into_iter().map(fields).collect(), waiters: holders.waiters }
    }
}

impl From<HoldersFields> for Holders {
    fn from(fields: HoldersFields) -> Self {
        let holder = |fields: HolderFields| {
            let mut holder = Holder::new(fields.mode);
            (holder.token, holder.remaining) = (fields.token.map(FencingToken::from), fields.remaining);
            (holder.granted_at, holder.label, holder.reason) = (fields.granted_at, fields.label, fields.reason);
            holder
        };
        let mut holders = Self::new(&fields.key, fields.holders.into_iter().map(holder).collect());
        holders.waiters = fields.waiters;
        holders
    }
}

impl From<Page> for Reply {
    fn from(page: Page) -> Self {
        Self::Page {
            keys: page.keys.into_iter().map(HoldersFields::from).collect(),
            next: page.next.map(|Cursor(place)| place),
        }
    }
}

/// Why a step failed.
#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct Failure {
    kind: String,
    detail: Option<String>,
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let kind = match error.kind() {
            // The agent ends, and another may follow it.
            ErrorKind::Closed => ErrorKind::Unavailable,
            kind => kind,
        };
        Self { kind: kind_name(kind).to_owned(), detail: error.retell().advice().map(str::to_owned) }
    }
}

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Self {
        let refused = if refusal.retry { ErrorKind::Unavailable } else { ErrorKind::Backend };
        Self { kind: kind_name(refused).to_owned(), detail: Some(refusal.message) }
    }
}

impl From<Failure> for Error {
    fn from(failure: Failure) -> Self {
        // What is not known may have been applied.
        let kind = kind_named(&failure.kind).unwrap_or(ErrorKind::Indeterminate);
        let error = Self::new(kind, "ask the agent");
        match failure.detail {
            Some(detail) => error.detail(detail),
            None => error,
        }
    }
}

mod key {
    use leasehold_core::LockKey;
    use serde::de::Error as _;
    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(key: &LockKey, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(key.as_str())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<LockKey, D::Error> {
        LockKey::new(String::deserialize(from)?).map_err(D::Error::custom)
    }
}

mod owner {
    use leasehold_core::OwnerId;
    use serde::de::Error as _;
    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(owner: &OwnerId, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&owner.to_hex())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<OwnerId, D::Error> {
        // The text is a secret: it is not quoted.
        OwnerId::parse_hex(&String::deserialize(from)?).ok_or_else(|| D::Error::custom("no owner id"))
    }
}

mod text {
    use std::sync::Arc;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    #[allow(clippy::ref_option, reason = "serde asks for it")]
    pub(super) fn serialize<S: Serializer>(text: &Option<Arc<str>>, to: S) -> Result<S::Ok, S::Error> {
        text.as_deref().serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Arc<str>>, D::Error> {
        Ok(Option::<String>::deserialize(from)?.map(Arc::from))
    }
}
