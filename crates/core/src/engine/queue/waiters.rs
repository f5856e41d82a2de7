use std::sync::Arc;

use tokio::sync::oneshot;

use super::{Lane, Queue, Ticket};
use crate::{LockKey, SessionId};

/// The queue of a process for the keys of one store, where several engines share that: one for each session.
///
/// All who wait for a key stand in one line, and only the first of them asks the store. Whoever acts for the session
/// that holds the key goes past it.
#[derive(Clone, Debug)]
pub struct Waiters(Arc<Queue>);

impl Waiters {
    /// Nobody waits yet.
    pub fn new() -> Self {
        Self(Arc::new(Queue::new(false)))
    }

    pub(in crate::engine) fn into_queue(self) -> Arc<Queue> {
        self.0
    }
}

impl Default for Waiters {
    fn default() -> Self {
        Self::new()
    }
}

impl Queue {
    /// The session that holds the key, as far as that is known here.
    pub(super) fn session_of(&self, lane: &Lane, key: &LockKey) -> Option<SessionId> {
        let holders = self.holders();
        let here = holders.get(key).filter(|holding| holding.tenure.is_held());
        here.map_or(lane.holder, |holding| holding.session)
    }
}

impl Lane {
    /// Admits those who act for this session.
    pub(super) fn call(&mut self, session: Option<SessionId>) {
        let called = self.entries.iter_mut().filter(|entry| session.is_some() && entry.session == session);
        for turn in called.filter_map(|entry| entry.turn.take()) {
            // A waiter that is gone removes its entry when its ticket drops.
            let _ = turn.send(());
        }
    }
}

impl Ticket {
    /// The store said who holds it.
    pub(in crate::engine) fn held_by(&self, session: Option<SessionId>) {
        if session.is_some()
            && let Some(lane) = self.queue.lanes().get_mut(&self.key)
        {
            lane.holder = session;
            lane.call(session);
        }
    }

    /// Whether it is its turn, or its session holds the key. If neither, it waits for either from now on.
    pub(in crate::engine) fn may_ask(&mut self) -> bool {
        let Some(session) = self.session else { return true };
        let mut lanes = self.queue.lanes();
        let Some(lane) = lanes.get_mut(&self.key) else { return true };
        let enters = self.queue.session_of(lane, &self.key) == Some(session);
        let Ok(behind @ 1..) = lane.entries.binary_search_by_key(&self.id, |entry| entry.id) else { return true };
        if !enters {
            let (turn, admitted) = oneshot::channel();
            lane.entries[behind].turn = Some(turn);
            self.turn = admitted;
        }
        enters
    }
}
