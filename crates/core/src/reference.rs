//! The contract as code: what each step of a store does to one key.
//!
//! No step here reads a clock. Leases that have ended are taken out before it ([`Key::end`]), and a new end comes with it. So the
//! rules are written once for two uses: the memory store knows when a lease ends ([`Moment`]), and the model of the conformance suite,
//! which asks a store from outside, knows a span in which it ends.

use std::sync::Arc;

use crate::clock::Moment;
use crate::{Claim, GrantRef, LeaseStatus, Mode, OwnerId};

/// When a lease ends.
pub(crate) trait End: Copy {
    /// The later of two ends: a lease is never shortened (C9).
    fn or_later(self, other: Self) -> Self;
}

impl End for Moment {
    fn or_later(self, other: Self) -> Self {
        self.max(other)
    }
}

/// One lease.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Lease<E> {
    pub(crate) owner: OwnerId,
    pub(crate) mode: Mode,
    pub(crate) epoch: u64,
    pub(crate) ends: E,
    pub(crate) label: Option<Arc<str>>,
    pub(crate) reason: Option<Arc<str>>,
}

impl<E: End> Lease<E> {
    fn new(claim: &Claim, epoch: u64, ends: E) -> Self {
        let (label, reason) = (claim.label.clone(), claim.reason.clone());
        Self { owner: claim.owner, mode: claim.mode, epoch, ends, label, reason }
    }

    /// Whether a grant is of this lease, and not of an earlier one of its owner.
    pub(crate) fn is(&self, grant: &GrantRef) -> bool {
        self.owner == grant.owner && grant.epoch == Some(self.epoch)
    }
}

/// What a store knows of one key.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Key<E> {
    pub(crate) leases: Vec<Lease<E>>,
    /// The newest epoch. No step makes it smaller (C4).
    pub(crate) epoch: u64,
    /// The leases that were ended by force (C6).
    pub(crate) forced: Vec<Lease<E>>,
    /// How many of these, at the end, one step ended: the last one that ended any.
    pub(crate) forced_at_once: usize,
}

/// The answer to a claim.
#[derive(Debug, PartialEq)]
pub(crate) enum Claimed<E> {
    Granted(u64),
    /// The leases that stand in the way.
    Busy(Vec<Lease<E>>),
    /// The clock allows no other epoch yet.
    TooSoon,
}

impl<E: End> Key<E> {
    /// A key that nobody has had, in a store whose epochs begin behind this one.
    pub(crate) fn new(epoch: u64) -> Self {
        Self { leases: Vec::new(), epoch, forced: Vec::new(), forced_at_once: 0 }
    }

    /// Takes out the leases that have ended: no step sees them (C3, C8).
    pub(crate) fn end(&mut self, has_ended: impl Fn(E) -> bool) {
        self.leases.retain(|lease| !has_ended(lease.ends));
    }

    /// The lease of an owner (C2).
    pub(crate) fn of(&self, owner: OwnerId) -> Option<&Lease<E>> {
        self.leases.iter().find(|lease| lease.owner == owner)
    }

    /// The leases beside which this mode is not granted (C1).
    pub(crate) fn in_the_way(&self, mode: Mode) -> impl Iterator<Item = &Lease<E>> {
        self.leases.iter().filter(move |lease| mode == Mode::Exclusive || lease.mode == Mode::Exclusive)
    }

    /// Grants a key that is free for this mode; a repeated claim gets the grant that it has, and no other end (C2). `next` is the
    /// epoch after the newest one.
    pub(crate) fn claim(&mut self, claim: &Claim, next: impl FnOnce(u64) -> Option<u64>, ends: E) -> Claimed<E> {
        if let Some(held) = self.of(claim.owner) {
            return Claimed::Granted(held.epoch);
        }
        let in_the_way: Vec<_> = self.in_the_way(claim.mode).cloned().collect();
        if !in_the_way.is_empty() {
            return Claimed::Busy(in_the_way);
        }
        let Some(epoch) = next(self.epoch) else { return Claimed::TooSoon };
        self.epoch = self.epoch.max(epoch);
        self.leases.push(Lease::new(claim, epoch, ends));
        Claimed::Granted(epoch)
    }

    /// Prolongs a lease that is there, and shortens none (C9).
    pub(crate) fn renew(&mut self, grant: &GrantRef, ends: E) -> LeaseStatus {
        match self.leases.iter_mut().find(|lease| lease.is(grant)) {
            Some(lease) => {
                lease.ends = lease.ends.or_later(ends);
                LeaseStatus::Held
            }
            None => self.why_gone(grant),
        }
    }

    /// Ends the lease of an owner, and no other (C2, C20).
    pub(crate) fn release(&mut self, grant: &GrantRef) -> LeaseStatus {
        let before = self.leases.len();
        self.leases.retain(|lease| lease.owner != grant.owner);
        if self.leases.len() < before { LeaseStatus::Held } else { self.why_gone(grant) }
    }

    /// Gives a lease to a new owner, with its epoch and texts (C28).
    pub(crate) fn take_over(&mut self, grant: &GrantRef, new_owner: OwnerId, ends: E) -> LeaseStatus {
        let again = GrantRef { owner: new_owner, ..grant.clone() };
        match self.leases.iter_mut().find(|lease| lease.is(grant) || lease.is(&again)) {
            Some(lease) => {
                lease.owner = new_owner;
                lease.ends = lease.ends.or_later(ends);
                LeaseStatus::Held
            }
            None => self.why_gone(grant),
        }
    }

    /// Makes a reader of a writer, with an epoch, texts and a lease of its own (C29). Whether it did.
    pub(crate) fn downgrade(&mut self, writer: &GrantRef, claim: &Claim, epoch: u64, ends: E) -> bool {
        let found = self.leases.iter_mut().find(|lease| lease.is(writer) && lease.mode == Mode::Exclusive);
        let Some(lease) = found else { return false };
        *lease = Lease::new(claim, epoch, ends);
        self.epoch = epoch;
        true
    }

    /// Ends every lease, or only the one with this epoch, and answers which (C25).
    pub(crate) fn force(&mut self, only: Option<u64>) -> Vec<Lease<E>> {
        let meant = |lease: &mut Lease<E>| only.is_none_or(|epoch| epoch == lease.epoch);
        let ended: Vec<_> = self.leases.extract_if(.., meant).collect();
        if !ended.is_empty() {
            self.forced_at_once = ended.len();
        }
        self.forced.extend_from_slice(&ended);
        ended
    }

    fn why_gone(&self, grant: &GrantRef) -> LeaseStatus {
        let forced = self.forced.iter().any(|lease| lease.owner == grant.owner);
        if forced { LeaseStatus::ForceReleased } else { LeaseStatus::NotHeld }
    }
}
