//! What is known of one key in the store.

use super::event::Member;
use super::pending::{LostEpoch, PendingClaim, PendingRelease, PendingTakeOver};
use super::subscription::Subscription;
use super::waiter::{Changes, LastAnswer};
use crate::clock::Moment;
use crate::{OwnerId, SessionId};

/// What is known of a key in the store: what was asked there, and what was answered.
#[derive(Clone, Debug)]
pub(super) struct InStore<W> {
    pub(super) claims: Vec<PendingClaim<W>>,
    pub(super) take_overs: Vec<PendingTakeOver<W>>,
    pub(super) releases: Vec<PendingRelease<W>>,
    /// The epochs that sessions have lost, as long as the store may have something of them.
    pub(super) lost: Vec<LostEpoch>,
    /// Whose mark of a waiting writer the store may have: the owner of the last claim that may have left one.
    pub(super) mark: Option<(Member, OwnerId)>,
    pub(super) subscription: Subscription,
    /// Whether a waiter here waits for a holder of another process.
    pub(super) wants_notifications: bool,
    /// Counts of what may have freed the key.
    pub(super) changes: Changes,
    /// The last answer of the store; `None` while it is out of date.
    pub(super) last_answer: Option<LastAnswer>,
    /// Until when the lease lasts that the store named in its last answer.
    pub(super) busy_until: Moment,
    /// The session that holds the key, if the store named one.
    pub(super) session: Option<SessionId>,
    /// No claim is sent before this moment: after the last local hand-off that was allowed, so that other processes go
    /// first, and after a grant that had to be refused, because the store would grant the same again.
    pub(super) yield_until: Moment,
}

impl<W> InStore<W> {
    pub(super) fn new() -> Self {
        Self {
            claims: Vec::new(),
            take_overs: Vec::new(),
            releases: Vec::new(),
            lost: Vec::new(),
            mark: None,
            subscription: Subscription::new(),
            wants_notifications: false,
            changes: Changes::default(),
            last_answer: None,
            busy_until: Moment::default(),
            session: None,
            yield_until: Moment::default(),
        }
    }

    /// Whether nothing is under way, and nothing is remembered.
    pub(super) fn is_settled(&self) -> bool {
        self.claims.is_empty() && self.take_overs.is_empty() && self.releases.is_empty() && self.lost.is_empty()
    }

    /// Empties it, and keeps the capacity of its lists.
    pub(super) fn clear(&mut self) {
        // Each field is named, so that none that comes is forgotten.
        let Self {
            claims,
            take_overs,
            releases,
            lost,
            mark,
            subscription,
            wants_notifications,
            changes,
            last_answer,
            busy_until,
            session,
            yield_until,
        } = self;
        claims.clear();
        take_overs.clear();
        releases.clear();
        lost.clear();
        (*subscription, *wants_notifications, *changes) = (Subscription::new(), false, Changes::default());
        *mark = None;
        (*last_answer, *busy_until) = (None, Moment::default());
        (*session, *yield_until) = (None, Moment::default());
    }
}
