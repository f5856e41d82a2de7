//! The steps of a backend, as lines: `[number, step]` from the client, and `[number, reply]` from the agent. What the store tells of a
//! subscription comes under the number of the step that subscribed.

use std::time::Duration;

use leasehold_core::{
    Backend, Capabilities, Capability, Claim, Cursor, Error, ErrorKind, GrantRef, LockKey, Notification, Renewal,
    Result,
};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};

use crate::protocol::Refusal;

/// The version of the steps. An agent serves this one alone.
pub(crate) const STEPS: u32 = 2;

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
    place: String,
    capabilities: Vec<Capability>,
    shortest_ttl: Duration,
    lease_granularity: Duration,
    pub(crate) answers_within: Duration,
    pub(crate) renewal_batch: usize,
}

impl Served {
    pub(crate) fn of(backend: &dyn Backend, place: &str) -> Self {
        let store = backend.capabilities();
        Self {
            version: STEPS,
            store: store.backend().to_owned(),
            place: place.to_owned(),
            capabilities: Capability::ALL.iter().copied().filter(|capability| store.has(*capability)).collect(),
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
        let has = |capability: &Capability| given.contains(capability) || self.capabilities.contains(capability);
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
    /// Within this time.
    Renew(Vec<Renewal>, Duration),
    Release(GrantRef),
    /// The writer, and the reader in its place.
    Downgrade(GrantRef, Claim),
    Inspect(LockKey),
    /// What begins with this, after this.
    List(String, Option<Cursor>),
    /// All holders, or that with this epoch.
    ForceRelease(LockKey, Option<u64>),
    /// What the client holds since an earlier connection, and how much is left of each lease. It has no reply.
    Holds(Vec<(GrantRef, Duration)>),
    Subscribe(LockKey),
    /// Ends the subscription with this number. It has no reply.
    Unsubscribe(u64),
}

/// What the agent answers to a step, and what the store tells of a key.
#[derive(Debug, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Reply {
    /// What the step of [`Backend`] answers.
    Done(Box<RawValue>),
    Notified(Notification),
    Failed(Error),
}

impl Reply {
    pub(crate) fn done(answer: &impl Serialize) -> Self {
        to_raw_value(answer).map_or_else(|_| Self::Failed(other()), Self::Done)
    }

    /// The answer of a step. An agent of this version gives that of no other.
    pub(crate) fn answer<T: DeserializeOwned>(self) -> Result<T> {
        match self {
            Self::Done(answer) => serde_json::from_str(answer.get()).map_err(|_| other()),
            Self::Failed(error) => Err(error),
            Self::Notified(_) => Err(other()),
        }
    }
}

fn other() -> Error {
    Error::new(ErrorKind::Indeterminate, "ask").detail("the agent gave the answer to another question")
}

impl From<Refusal> for Error {
    fn from(refusal: Refusal) -> Self {
        let kind = if refusal.retry { ErrorKind::Unavailable } else { ErrorKind::Backend };
        Self::new(kind, "ask").detail(refusal.message)
    }
}
