use std::time::{Duration, SystemTime};

use crate::{Clock, FencingToken, LockKey, Mode};

/// Who holds a key, as the store sees it: nobody, one exclusive holder, or any number of shared ones.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize, serde::Serialize))]
#[non_exhaustive]
pub struct Holders {
    /// The key that was asked about.
    pub key: LockKey,
    /// The live grants. Empty: free.
    pub holders: Vec<Holder>,
    /// How many wait in the store queue of the key. `None` where the store keeps no queue
    /// ([`Capability::Queue`](crate::Capability::Queue)), where it refuses to tell, and in the answer of a forced release.
    ///
    /// The waiters of all processes count, but of one locker only the first: the others of its wait queue have not asked the
    /// store. A waiter that died may count until the store takes it out of the queue.
    pub waiters: Option<u64>,
}

impl Holders {
    /// These holders of a key; how many wait for it is not known. The fields are public.
    pub fn new(key: &LockKey, holders: Vec<Holder>) -> Self {
        Self { key: key.clone(), holders, waiters: None }
    }
}

/// One live grant, as the store sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize, serde::Serialize))]
#[non_exhaustive]
pub struct Holder {
    /// Exclusive or shared.
    pub mode: Mode,
    /// The token of the epoch, where the backend gives tokens.
    pub token: Option<FencingToken>,
    /// What is left of the lease. `None` where the backend has no lease.
    pub remaining: Option<Duration>,
    /// When the lease was granted, by the store's clock. `None` where no step of the store reads a clock (etcd).
    ///
    /// It is read from the epoch, so it is too late by up to a millisecond; and where the store's clock was set back, it stays ahead of
    /// the clock until that has caught up. Renewals, local hand-offs and an attach go on with the lease that there is, and do
    /// not change it; a downgrade begins a new lease.
    pub granted_at: Option<SystemTime>,
    /// Who holds the lock: the [`label`](crate::LockOptions::label) of the request.
    pub label: Option<String>,
    /// Why it is held: the [`reason`](crate::LockOptions::reason) of the request.
    pub reason: Option<String>,
}

impl Holder {
    /// A grant of which only the mode is known; the fields are public.
    pub fn new(mode: Mode) -> Self {
        Self { mode, token: None, remaining: None, granted_at: None, label: None, reason: None }
    }

    /// A grant with this epoch, on a store whose epochs follow its clock: the epoch tells the token, and when the lease was
    /// granted.
    pub fn of_epoch(mode: Mode, epoch: u64) -> Self {
        let (token, granted_at) = (Some(FencingToken::of_epoch(epoch)), Some(FencingToken::time_of(epoch)));
        Self { token, granted_at, ..Self::new(mode) }
    }

    /// How long the lease has been held, by this clock: zero if the store's clock is ahead of it. `None` where
    /// [`granted_at`](Self::granted_at) is.
    ///
    /// It is wrong by as much as the two clocks differ.
    pub fn held_for(&self, clock: &Clock) -> Option<Duration> {
        let now = SystemTime::UNIX_EPOCH + clock.since_1970();
        self.granted_at.map(|granted| now.duration_since(granted).unwrap_or_default())
    }
}

/// One page of [`list`](crate::Admin::list).
#[derive(Clone, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize, serde::Serialize))]
pub struct Page {
    /// Held keys with their holders, in no promised order. There may be none although there is a next page: a page ends
    /// also where much was looked through.
    pub keys: Vec<Holders>,
    /// Where the next page starts; `None` after the last one.
    pub next: Option<Cursor>,
}

/// A place in a listing. Opaque: it means something only to the backend that gave it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize, serde::Serialize))]
pub struct Cursor(pub String);
