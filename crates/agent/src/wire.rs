//! The steps of a backend, as lines: `[number, step]` from the client, and `[number, reply]` from the agent. What the store tells of a
//! subscription comes under the number of the step that subscribed.

use std::collections::BTreeSet;
use std::time::Duration;

use leasehold_core::{
    Attempt, Backend, Capabilities, Capability, Claim, Cursor, Error, ErrorKind, GrantRef, Holders, LeaseStatus,
    LockKey, Notification, Page, Renewal,
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
    TryAcquire(Claim),
    Renew {
        renewals: Vec<Renewal>,
        within: Duration,
    },
    Release(GrantRef),
    Downgrade {
        writer: GrantRef,
        claim: Claim,
    },
    Inspect(LockKey),
    List {
        prefix: String,
        after: Option<Cursor>,
    },
    ForceRelease {
        key: LockKey,
        only: Option<u64>,
    },
    Subscribe(LockKey),
    /// Ends the subscription with this number. It has no reply.
    Unsubscribe(u64),
}

/// What the agent answers to a step, and what the store tells of a key.
#[derive(Debug, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Reply {
    Attempt(Attempt),
    Statuses(Vec<Result<LeaseStatus, Failure>>),
    Status(LeaseStatus),
    Holders(Holders),
    Page(Page),
    Subscribed,
    Notified(Notification),
    Failed(Failure),
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
