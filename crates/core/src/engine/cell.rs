//! What the guards of a lease read to know whether it is held.

use std::num::NonZeroU64;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering, fence};
use std::sync::{Arc, OnceLock};

use tokio::sync::Notify;
use tokio::sync::futures::Notified;

use super::state::{End, LeaseCell};
use crate::clock::Moment;
use crate::{GrantRef, LockKey, LossReason, Mode, OwnerId};

/// Shared by a lease and its guards. Guards read from it whether the lease is held: a comparison of two clock readings.
///
/// The comparison is made at the point of use: after a pause of the whole process, a flag that some task should have set
/// still says "held" on the first instruction (measured: 1 resume in 5).
#[derive(Clone, Debug)]
pub(crate) struct Cell(Arc<CellInner>);

/// There may be a hundred thousand of them.
#[derive(Debug)]
struct CellInner {
    key: LockKey,
    owner: OwnerId,
    mode: Mode,
    /// One more than the epoch, so that "none" takes no room.
    after_epoch: Option<NonZeroU64>,
    /// When the lease ends unless it is prolonged; once it has ended, when it did.
    limit: AtomicU64,
    /// Made by the first task that waits for a loss.
    changed: OnceLock<Box<Notify>>,
    end: EndOnce,
    /// How the first guard of the lease ended. The others have their own.
    first_over: EndOnce,
    has_first: AtomicBool,
}

impl LeaseCell for Cell {
    fn new(GrantRef { key, owner, mode, epoch }: GrantRef, limit: Moment) -> Self {
        Self(Arc::new(CellInner {
            key,
            owner,
            mode,
            after_epoch: epoch.map(|epoch| NonZeroU64::MIN.saturating_add(epoch)),
            limit: AtomicU64::new(limit.as_nanos()),
            changed: OnceLock::new(),
            end: EndOnce::default(),
            first_over: EndOnce::default(),
            has_first: AtomicBool::new(false),
        }))
    }

    fn key(&self) -> &LockKey {
        &self.0.key
    }

    fn owner(&self) -> OwnerId {
        self.0.owner
    }

    fn mode(&self) -> Mode {
        self.0.mode
    }

    fn epoch(&self) -> Option<u64> {
        self.0.after_epoch.map(|after| after.get() - 1)
    }
}

impl Cell {
    /// Sets the moment at which the lease ends. True if it is earlier than before: tasks that wait for the end have to be
    /// notified.
    pub(super) fn set_limit(&self, limit: Moment) -> bool {
        self.end().is_none() && limit.as_nanos() < self.0.limit.swap(limit.as_nanos(), Ordering::AcqRel)
    }

    pub(super) fn set_end(&self, end: End, at: Moment) {
        if self.end().is_none() {
            // In this order: whoever sees the end must see its moment.
            self.0.limit.store(at.as_nanos(), Ordering::Release);
            self.0.end.set(end);
        }
    }

    /// Wakes the tasks that wait for a loss, so that they look at the cell again.
    pub(super) fn notify(&self) {
        // Either a task that begins to wait is seen here, or it sees what has changed: with `changed`.
        fence(Ordering::SeqCst);
        if let Some(changed) = self.0.changed.get() {
            changed.notify_waiters();
        }
    }

    /// Resolves at the next [`notify`](Self::notify).
    pub(super) fn changed(&self) -> Notified<'_> {
        let changed = self.0.changed.get_or_init(Box::default);
        fence(Ordering::SeqCst);
        changed.notified()
    }

    pub(super) fn limit(&self) -> Moment {
        Moment::from_nanos(self.0.limit.load(Ordering::Acquire))
    }

    pub(super) fn end(&self) -> Option<End> {
        self.0.end.get()
    }

    /// When the lease ended, if it has.
    pub(super) fn ended_at(&self) -> Option<Moment> {
        self.end().map(|_| self.limit())
    }

    /// Whether nobody asked this before: for the first guard of the lease.
    pub(super) fn begin_first(&self) -> bool {
        !self.0.has_first.swap(true, Ordering::AcqRel)
    }

    pub(super) fn first_over(&self) -> &EndOnce {
        &self.0.first_over
    }
}

/// How something ended, if it has, in a byte. It is set once.
#[derive(Debug, Default)]
pub(super) struct EndOnce(AtomicU8);

/// What a byte above zero stands for.
const ENDS: [End; 8] = [
    End::Released,
    End::Detached,
    End::Lost(LossReason::Expired),
    End::Lost(LossReason::Stolen),
    End::Lost(LossReason::ForceReleased),
    End::Lost(LossReason::MaxHold),
    End::Lost(LossReason::Unreachable),
    End::Lost(LossReason::Shutdown),
];

impl EndOnce {
    pub(super) fn get(&self) -> Option<End> {
        usize::from(self.0.load(Ordering::Acquire)).checked_sub(1).map(|index| ENDS[index])
    }

    /// Has no effect if it was set before.
    pub(super) fn set(&self, end: End) {
        let byte = match end {
            End::Released => 1,
            End::Detached => 2,
            End::Lost(LossReason::Expired) => 3,
            End::Lost(LossReason::Stolen) => 4,
            End::Lost(LossReason::ForceReleased) => 5,
            End::Lost(LossReason::MaxHold) => 6,
            End::Lost(LossReason::Unreachable) => 7,
            End::Lost(LossReason::Shutdown) => 8,
        };
        let _ = self.0.compare_exchange(0, byte, Ordering::AcqRel, Ordering::Acquire);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_shared_of_a_lease_is_small() {
        // With the two counts of its `Arc` and the word of the allocator: 96 bytes.
        assert!(size_of::<CellInner>() <= 72);
    }

    #[test]
    fn the_first_end_stays_and_is_read_as_it_was_set() {
        for end in ENDS {
            let once = EndOnce::default();
            assert_eq!(once.get(), None);
            once.set(end);
            once.set(End::Released);
            once.set(End::Detached);
            assert_eq!(once.get(), Some(end));
        }
    }
}
