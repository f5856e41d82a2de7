//! What the guards of a lease read to know whether it is held.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use tokio::sync::Notify;
use tokio::sync::futures::Notified;

use super::state::{End, LeaseCell};
use crate::GrantRef;
use crate::clock::Moment;

/// Shared by a lease and its guards. Guards read from it whether the lease is held: a comparison of two clock readings.
///
/// The comparison is made at the point of use: after a pause of the whole process, a flag that some task should have set
/// still says "held" on the first instruction (measured: 1 resume in 5).
#[derive(Clone, Debug)]
pub(crate) struct Cell(Arc<CellInner>);

#[derive(Debug)]
struct CellInner {
    grant: GrantRef,
    limit: AtomicU64,
    end: OnceLock<(End, Moment)>,
    changed: Notify,
}

impl LeaseCell for Cell {
    fn new(grant: GrantRef, limit: Moment) -> Self {
        let limit = AtomicU64::new(limit.as_nanos());
        Self(Arc::new(CellInner { grant, limit, end: OnceLock::new(), changed: Notify::new() }))
    }

    fn grant(&self) -> &GrantRef {
        &self.0.grant
    }
}

impl Cell {
    /// Sets the moment at which the lease ends. True if it is earlier than before: tasks that wait for the end have to be
    /// notified.
    pub(super) fn set_limit(&self, limit: Moment) -> bool {
        limit.as_nanos() < self.0.limit.swap(limit.as_nanos(), Ordering::AcqRel)
    }

    pub(super) fn set_end(&self, end: End, at: Moment) {
        let _ = self.0.end.set((end, at));
    }

    /// Wakes the tasks that wait for a loss, so that they look at the cell again.
    pub(super) fn notify(&self) {
        self.0.changed.notify_waiters();
    }

    /// Resolves at the next [`notify`](Self::notify).
    pub(super) fn changed(&self) -> Notified<'_> {
        self.0.changed.notified()
    }

    pub(super) fn limit(&self) -> Moment {
        Moment::from_nanos(self.0.limit.load(Ordering::Acquire))
    }

    pub(super) fn end(&self) -> Option<End> {
        self.0.end.get().map(|(end, _)| *end)
    }

    /// When the lease ended, if it has.
    pub(super) fn ended_at(&self) -> Option<Moment> {
        self.0.end.get().map(|(_, at)| *at)
    }
}
