use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::tenure::Tenure;
use crate::clock::Moment;
use crate::{GrantRef, LockKey, OwnerId};

/// The tenures that a re-entrant engine holds, lost ones included until their last guard is gone.
///
/// Without them, an acquire under a lost outer guard would silently begin a fresh lease.
#[derive(Debug)]
pub(super) struct Sessions {
    /// `None` where the backend does not re-enter.
    entered: Option<Mutex<HashMap<LockKey, Entered>>>,
    /// Lost levels that the store may still have: a claim that joined one would go on with the lost tenure, and prolong
    /// what nobody stands on. `None` where the backend does not re-enter, so that no claim there waits for this.
    dead: Option<Mutex<Vec<GrantRef>>>,
}

/// A tenure, and those who stand on it.
#[derive(Debug)]
pub(super) struct Entered {
    pub(super) tenure: Arc<Tenure>,
    /// The guards that are there.
    pub(super) levels: Vec<Level>,
}

/// A guard of a session, and what it asks for as long as it is there.
#[derive(Debug)]
pub(super) struct Level {
    pub(super) owner: OwnerId,
    pub(super) renew: bool,
    pub(super) cap: Moment,
}

impl Sessions {
    pub(super) fn new(reentrant: bool) -> Self {
        Self { entered: reentrant.then(Mutex::default), dead: reentrant.then(Mutex::default) }
    }

    pub(super) fn are_reentrant(&self) -> bool {
        self.entered.is_some()
    }

    /// The tenure of this key, if one is held here.
    pub(super) fn of(&self, key: &LockKey) -> Option<Arc<Tenure>> {
        Some(Arc::clone(&self.lock()?.get(key)?.tenure))
    }

    /// The grants of all guards on a tenure: its own, unless it was entered again.
    pub(super) fn levels(&self, tenure: &Arc<Tenure>) -> Vec<GrantRef> {
        let entered = self.lock();
        match entered.as_ref().and_then(|entered| entered.get(&tenure.grant.key)) {
            Some(entered) if Arc::ptr_eq(&entered.tenure, tenure) => {
                entered.levels.iter().map(|level| GrantRef { owner: level.owner, ..tenure.grant.clone() }).collect()
            }
            _ => vec![tenure.grant.clone()],
        }
    }

    /// Keeps guards from joining and leaving while it is held: one that joined a tenure in the moment in which the
    /// last other left would stand on nothing.
    pub(super) fn lock(&self) -> Option<MutexGuard<'_, HashMap<LockKey, Entered>>> {
        Some(self.entered.as_ref()?.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Notes a lost level until it is given back.
    pub(super) fn died(&self, grant: &GrantRef) {
        if let Some(mut dead) = self.dead() {
            dead.push(grant.clone());
        }
    }

    /// One of the dead levels of this key.
    pub(super) fn dead_on(&self, key: &LockKey) -> Option<GrantRef> {
        self.dead()?.iter().find(|grant| grant.key == *key).cloned()
    }

    pub(super) fn buried(&self, owner: OwnerId) {
        if let Some(mut dead) = self.dead() {
            dead.retain(|grant| grant.owner != owner);
        }
    }

    fn dead(&self) -> Option<MutexGuard<'_, Vec<GrantRef>>> {
        Some(self.dead.as_ref()?.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
