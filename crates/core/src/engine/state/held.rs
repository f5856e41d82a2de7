//! How a lease is stored while nothing happens to its key.

use std::sync::Arc;

use super::event::{BatchId, GuardId, LeaseCell, LeaseId};
use super::lease::{GuardEntry, Lease, Terms, cap_of};
use crate::LockKey;
use crate::clock::Moment;

/// A lease with one guard, as it is stored while nothing happens to its key: without what other leases have in common with
/// it, and what is in its cell. There may be a hundred thousand of them.
#[derive(Clone, Debug)]
#[allow(clippy::struct_excessive_bools, reason = "each takes a byte, and they do not depend on each other")]
pub(super) struct HeldLease<L> {
    id: LeaseId,
    guard: GuardId,
    terms: Arc<Terms>,
    cell: L,
    since: Moment,
    first_nanos: u64,
    deadline: Moment,
    next_renewal: Moment,
    renewal: Option<BatchId>,
    number: u16,
    renew: bool,
    unanswered: bool,
    may_be_late: bool,
    /// Whether the last answer of the store was "busy".
    busy: bool,
    /// The moment at which the schedule has the key.
    noted: Moment,
}

impl<L: LeaseCell> HeldLease<L> {
    /// Stores a lease, if nothing of it is lost by that, with what else is known of its key.
    pub(super) fn of(lease: Lease<L>, noted: Moment, busy: bool) -> Result<Self, Lease<L>> {
        let guard = match lease.guards.as_slice() {
            [guard] if lease.end.is_none() && !lease.owes_release => guard,
            _ => return Err(lease),
        };
        let &GuardEntry { id: guard, owner, number, renew, cap } = guard;
        if owner != lease.cell.owner() || cap != cap_of(lease.terms.max_hold, lease.since) {
            return Err(lease);
        }
        let Lease { id, terms, since, first_nanos, deadline, next_renewal, .. } = lease;
        let Lease { renewal, unanswered, may_be_late, cell, .. } = lease;
        Ok(Self {
            id,
            guard,
            terms,
            cell,
            since,
            first_nanos,
            deadline,
            next_renewal,
            renewal,
            number,
            renew,
            unanswered,
            may_be_late,
            busy,
            noted,
        })
    }

    /// The lease in full.
    pub(super) fn lease(self) -> Lease<L> {
        let Self { id, guard, terms, cell, since, first_nanos, deadline, next_renewal, .. } = self;
        let Self { renewal, number, renew, unanswered, may_be_late, .. } = self;
        let cap = cap_of(terms.max_hold, since);
        let guard = GuardEntry { id: guard, owner: cell.owner(), number, renew, cap };
        Lease {
            id,
            terms,
            since,
            first_nanos,
            deadline,
            next_renewal,
            renewal,
            unanswered,
            may_be_late,
            guards: [guard].into(),
            cell,
            end: None,
            owes_release: false,
        }
    }

    pub(super) fn name(&self) -> &LockKey {
        self.cell.key()
    }

    pub(super) fn noted(&self) -> Moment {
        self.noted
    }

    pub(super) fn is_busy(&self) -> bool {
        self.busy
    }

    pub(super) fn terms(&self) -> &Terms {
        &self.terms
    }
}

#[cfg(test)]
mod tests {
    use std::mem::size_of;

    use super::*;

    #[test]
    fn what_is_stored_of_a_lease_is_small() {
        assert!(size_of::<HeldLease<Arc<()>>>() <= 88);
    }
}
