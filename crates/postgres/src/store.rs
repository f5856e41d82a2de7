use std::sync::Arc;

use leasehold_core::{GroupCommit, LockKey, Turns};

use crate::claims::Claims;
use crate::notifications::Subscriptions;
use crate::releases::Releases;
use crate::sessions::Sessions;

/// The locks of one namespace in one schema: the connections, and the claims and releases that are sent together.
#[derive(Clone, Debug)]
pub(crate) struct Store {
    pub(crate) sessions: Sessions,
    pub(crate) claims: Arc<GroupCommit<Claims>>,
    pub(crate) releases: Arc<GroupCommit<Releases>>,
    pub(crate) subscriptions: Option<Subscriptions>,
}

impl Store {
    pub(crate) fn new(sessions: Sessions) -> Self {
        let (enabled, turns) = (sessions.address().group_commit, Turns::default());
        let claims = Arc::new(GroupCommit::new(Claims::new(sessions.clone()), enabled, &turns));
        let releases = Arc::new(GroupCommit::new(Releases(sessions.clone()), enabled, &turns));
        let subscriptions = Subscriptions::new(&sessions);
        Self { sessions, claims, releases, subscriptions }
    }

    /// The name of a key's rows.
    pub(crate) fn name_of(&self, key: &LockKey) -> Vec<u8> {
        self.sessions.address().namespace.name_of(key)
    }
}
