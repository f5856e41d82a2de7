use std::collections::BTreeMap;
use std::iter::once;
use std::time::Duration;

use futures::future::select_all;
use leasehold::{Guard, GuardMode, LockKey, LossReason};

/// What a command runs under: one lock, or several, of which each is as good as lost when one is.
pub(crate) struct Held<M: GuardMode> {
    /// The lock of KEY.
    pub(crate) first: Guard<M>,
    also: Vec<Guard<M>>,
}

impl<M: GuardMode> Held<M> {
    /// These locks, that of `key` first, if it is among them: a permit has a key of its own. `None`: there is no lock.
    pub(crate) fn of(mut all: Vec<Guard<M>>, key: &LockKey) -> Option<Self> {
        all.sort_by_key(|guard| guard.key() != key);
        let mut all = all.into_iter();
        Some(Self { first: all.next()?, also: all.collect() })
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = &Guard<M>> {
        once(&self.first).chain(&self.also)
    }

    pub(crate) fn into_all(self) -> impl Iterator<Item = Guard<M>> {
        once(self.first).chain(self.also)
    }

    /// The first loss, and the key.
    pub(crate) fn loss(&self) -> Option<(&LockKey, LossReason)> {
        self.all().find_map(|guard| Some((guard.key(), guard.loss()?)))
    }

    /// Resolves when one of them is lost.
    pub(crate) async fn lost(&self) -> LossReason {
        select_all(self.all().map(|guard| Box::pin(guard.lost()))).await.0
    }

    /// Resolves when somebody waits for one of them.
    pub(crate) async fn wanted(&self) {
        select_all(self.all().map(|guard| Box::pin(guard.wanted()))).await;
    }

    /// For how long all of them are held without another renewal.
    pub(crate) fn remaining(&self) -> Duration {
        self.all().map(Guard::remaining).min().unwrap_or_default()
    }

    /// The tokens of several locks, as a JSON object.
    pub(crate) fn tokens(&self) -> Option<String> {
        let tokens = self.all().map(|guard| (guard.key().as_str(), guard.fencing_token().map(u64::from)));
        let tokens: BTreeMap<_, _> = tokens.collect();
        (!self.also.is_empty()).then(|| serde_json::json!(tokens).to_string())
    }
}

/// The remaining lease. `None` if the store has no leases.
pub(crate) fn lease_left(remaining: Duration) -> Option<Duration> {
    Some(remaining).filter(|left| *left != Duration::MAX)
}
