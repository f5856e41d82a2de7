use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::tenure::Tenure;
use crate::LockKey;

/// The tenures that a re-entrant engine holds, lost ones included until their last guard is gone.
///
/// Without them, an acquire under a lost outer guard would silently begin a fresh lease.
#[derive(Debug)]
pub(super) struct Sessions {
    /// `None` where the backend does not re-enter.
    entered: Option<Mutex<HashMap<LockKey, Arc<Tenure>>>>,
}

impl Sessions {
    pub(super) fn new(reentrant: bool) -> Self {
        Self { entered: reentrant.then(Mutex::default) }
    }

    pub(super) fn are_reentrant(&self) -> bool {
        self.entered.is_some()
    }

    /// The tenure of this key, if one is held here.
    pub(super) fn of(&self, key: &LockKey) -> Option<Arc<Tenure>> {
        self.lock()?.get(key).cloned()
    }

    /// Keeps guards from joining and leaving while it is held: one that joined a tenure in the moment in which the
    /// last other left would stand on nothing.
    pub(super) fn lock(&self) -> Option<MutexGuard<'_, HashMap<LockKey, Arc<Tenure>>>> {
        Some(self.entered.as_ref()?.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
