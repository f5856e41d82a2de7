use std::time::Duration;

use crate::{FencingToken, LockKey, Mode};

/// Who holds a key, as the store sees it: nobody, one exclusive holder, or any number of shared ones.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holders {
    /// The key that was asked about.
    pub key: LockKey,
    /// The live grants. Empty: free.
    pub holders: Vec<Holder>,
}

/// One live grant, as the store sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Holder {
    /// Exclusive or shared.
    pub mode: Mode,
    /// The token of the epoch, where the backend gives tokens.
    pub token: Option<FencingToken>,
    /// What is left of the lease. `None` where the backend has no lease.
    pub remaining: Option<Duration>,
    /// Who holds the lock: the [`label`](crate::LockOptions::label) of the request.
    pub label: Option<String>,
    /// Why it is held: the [`reason`](crate::LockOptions::reason) of the request.
    pub reason: Option<String>,
}

impl Holder {
    /// A grant of which only the mode is known; the fields are public.
    pub fn new(mode: Mode) -> Self {
        Self { mode, token: None, remaining: None, label: None, reason: None }
    }
}

/// One page of [`list`](crate::Admin::list).
#[derive(Clone, Debug, Default)]
pub struct Page {
    /// Held keys with their holders, in no promised order. There may be none although there is a next page: a page ends
    /// also where much was looked through.
    pub keys: Vec<Holders>,
    /// Where the next page starts; `None` after the last one.
    pub next: Option<Cursor>,
}

/// A place in a listing. Opaque: it means something only to the backend that gave it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cursor(pub String);
