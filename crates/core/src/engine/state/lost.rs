//! Which epochs a session has lost: it must not join their leases again.

use std::time::Duration;

use super::event::{LeaseCell, Member};
use super::in_store::InStore;
use super::lease::Lease;
use super::pending::LostEpoch;
use super::release::LATE;
use crate::clock::Moment;

impl<W> InStore<W> {
    /// Notes the epoch of a lost lease of a session.
    pub(super) fn note_lost<L: LeaseCell>(&mut self, now: Moment, lease: &Lease<L>) {
        let Some(epoch) = lease.epoch().filter(|_| lease.is_reentrant()) else { return };
        let until = lease.deadline.max(now.plus(lease.terms.ttl)).plus(LATE);
        match self.lost.iter_mut().find(|lost| lost.member == lease.terms.member) {
            Some(lost) => (lost.epoch, lost.until) = (lost.epoch.max(epoch), lost.until.max(until)),
            None => self.lost.push(LostEpoch { member: lease.terms.member, epoch, until }),
        }
    }

    /// The newest epoch that this engine has lost. It joins no lease with this or an older epoch.
    pub(super) fn lost_epoch(&self, member: Member) -> Option<u64> {
        let lost = self.lost.iter().find(|lost| lost.member == member);
        lost.map(|lost| lost.epoch)
    }

    /// The store still has something of a lost epoch, for at least this time.
    pub(super) fn is_left(&mut self, now: Moment, member: Member, lasts: Duration) {
        for lost in self.lost.iter_mut().filter(|lost| lost.member == member) {
            lost.until = lost.until.max(now.plus(lasts).plus(LATE));
        }
    }

    /// Forgets the epochs of which the store cannot have anything any more.
    pub(super) fn forget_lost(&mut self, now: Moment) {
        self.lost.retain(|lost| now < lost.until);
    }
}
