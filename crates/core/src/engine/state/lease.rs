//! A lease that is held by this process: its deadline, its renewals and the guards on it.

use std::sync::Arc;
use std::time::Duration;

use smallvec::SmallVec;

use super::event::{BatchId, End, Granted, GuardId, GuardRef, KeyId, LeaseCell, LeaseId, Member, Traits};
use crate::clock::{Moment, lease_deadline};
use crate::options::Text;
use crate::{GrantRef, LockOptions, LossReason, Mode, OwnerId, SessionId};

/// A lease that this process holds, and all that is known of it.
#[derive(Clone, Debug)]
pub(super) struct Lease<L> {
    pub(super) id: LeaseId,
    pub(super) terms: Arc<Terms>,
    pub(super) since: Moment,
    /// The length of the first lease.
    pub(super) first_nanos: u64,
    pub(super) deadline: Moment,
    pub(super) next_renewal: Moment,
    /// The renewal under way. If its answer has not come when the next is due, it will not come in time.
    pub(super) renewal: Option<BatchId>,
    /// A renewal was sent, and none was confirmed since.
    pub(super) unanswered: bool,
    /// A claim of this owner may reach the store late.
    pub(super) may_be_late: bool,
    /// The guards on the lease: one, or the levels of a session, or co-readers.
    pub(super) guards: SmallVec<[GuardEntry; 1]>,
    pub(super) cell: L,
    /// How the lease ended. It is kept after that as long as it has guards.
    pub(super) end: Option<End>,
    /// The store may still have the lease; it is released with the last guard.
    pub(super) owes_release: bool,
}

/// The engine of a lease, and the terms of its claim.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Terms {
    pub(super) member: Member,
    pub(super) reentrant: bool,
    pub(super) session: Option<SessionId>,
    pub(super) ttl: Duration,
    pub(super) renew: bool,
    pub(super) max_hold: Option<Duration>,
    label: Option<Text>,
    reason: Option<Text>,
    /// False for a lease that was attached: the store shows the label and reason of the original claim.
    pub(super) known: bool,
}

impl Terms {
    pub(super) fn of(member: Member, traits: &Traits, options: &LockOptions, known: bool) -> Self {
        let &Traits { reentrant, session, .. } = traits;
        let LockOptions { ttl, renew, label, reason, wait: _, max_hold, warn_after: _, given: _ } = options.clone();
        Self { member, reentrant, session, ttl, renew, max_hold, label, reason, known }
    }

    fn are_of(&self, options: &LockOptions) -> bool {
        let same_texts = self.known && self.label == options.label && self.reason == options.reason;
        same_texts && self.ttl == options.ttl && self.renew == options.renew
    }
}

/// A guard on a lease, and its own options.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct GuardEntry {
    pub(super) id: GuardId,
    pub(super) owner: OwnerId,
    /// How many guards had the lease before, or which co-reader it is.
    pub(super) number: u16,
    pub(super) renew: bool,
    pub(super) cap: Moment,
}

/// The first lease of a grant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct FirstLease {
    pub(super) length: Duration,
    /// A moment before which the store cannot have granted it, so that the deadline errs early.
    pub(super) sent_at: Moment,
    /// False for a lock that has no deadline.
    pub(super) ends: bool,
    /// The grant came as a notification, which may be forged.
    pub(super) from_notification: bool,
}

/// The pause before the first renewal of a grant out of the store queue, which has a short first lease. A holder that
/// releases earlier costs no renewal.
const SOON: Duration = Duration::from_millis(20);

/// How long an offer is kept for its waiter before it goes to the next.
const UNTAKEN: Duration = Duration::from_secs(1);

/// How long a lease is held before its waiters listen for the key.
const STANDS: Duration = Duration::from_secs(1);

/// How long an offer stands before those behind are called.
const ALONE: Duration = Duration::from_millis(20);

impl FirstLease {
    /// The deadline of this lease on the local clock.
    pub(super) fn deadline(&self) -> Moment {
        if self.ends { lease_deadline(self.sent_at, self.length) } else { Moment::NEVER }
    }

    /// Whether a renewal has to follow soon, because the lease is short or unconfirmed.
    pub(super) fn is_provisional(&self, ttl: Duration) -> bool {
        self.from_notification || self.length < ttl
    }
}

impl<L: LeaseCell> Lease<L> {
    pub(super) fn new(id: LeaseId, terms: Arc<Terms>, grant: GrantRef, first: FirstLease, now: Moment) -> Self {
        let third = renewal_after(first.sent_at, first.length.min(terms.ttl));
        let next_renewal = if first.is_provisional(terms.ttl) { now.plus(SOON).min(third) } else { third };
        let limit = first.deadline().min(cap_of(terms.max_hold, now));
        Self {
            id,
            terms,
            since: now,
            first_nanos: u64::try_from(first.length.as_nanos()).unwrap_or(u64::MAX),
            deadline: first.deadline(),
            next_renewal,
            renewal: None,
            unanswered: false,
            may_be_late: false,
            guards: SmallVec::new(),
            cell: L::new(grant, limit),
            end: None,
            owes_release: false,
        }
    }

    /// The grant, as the store knows it.
    pub(super) fn grant(&self) -> GrantRef {
        self.cell.grant()
    }

    pub(super) fn epoch(&self) -> Option<u64> {
        self.cell.epoch()
    }

    /// The grant of one guard, as the store knows it.
    pub(super) fn grant_of(&self, owner: OwnerId) -> GrantRef {
        GrantRef { owner, ..self.grant() }
    }

    /// Whether the lease is of a session for which this caller acts.
    pub(super) fn admits(&self, member: Member, session: Option<SessionId>) -> bool {
        let Terms { reentrant, member: ours, session: for_session, .. } = &*self.terms;
        *reentrant && (*ours == member || (session.is_some() && *for_session == session))
    }

    pub(super) fn is_reentrant(&self) -> bool {
        self.terms.reentrant
    }

    pub(super) fn is_exclusive(&self) -> bool {
        self.cell.mode() == Mode::Exclusive
    }

    pub(super) fn is_held(&self, now: Moment) -> bool {
        self.end.is_none() && now < self.limit()
    }

    /// When the lease ends unless it is renewed.
    pub(super) fn limit(&self) -> Moment {
        self.deadline.min(self.cap())
    }

    /// Why the lease is lost when it ends by the clock.
    pub(super) fn reason(&self) -> LossReason {
        match () {
            () if self.cap() <= self.deadline => LossReason::MaxHold,
            () if self.unanswered => LossReason::Unreachable,
            () => LossReason::Expired,
        }
    }

    /// The next moment at which the lease has to be looked at.
    pub(super) fn next_event(&self) -> Moment {
        if self.end.is_some() {
            return Moment::NEVER;
        }
        self.next_renewal().min(self.limit())
    }

    /// When the lease is renewed next. Never, unless one of its guards asks for renewal.
    pub(super) fn next_renewal(&self) -> Moment {
        if self.guards.iter().any(|guard| guard.renew) { self.next_renewal } else { Moment::NEVER }
    }

    /// Until when an offer on this lease is kept for its waiter.
    pub(super) fn offered_until(&self, now: Moment) -> Moment {
        now.plus((self.terms.ttl / 3).min(UNTAKEN))
    }

    /// From when on whoever waits behind the lease listens for the key: the lease may be taken by force. Most are over before.
    pub(super) fn stands_at(&self) -> Moment {
        self.since.plus(STANDS)
    }

    /// When those behind an offer on this lease are called. Each that was in vain doubles the time for the next: on a machine that is
    /// so busy that all come late, somebody comes in time.
    pub(super) fn calls_at(&self, now: Moment, vain: u32) -> Moment {
        now.plus((self.terms.ttl / 4).min(ALONE * 2_u32.pow(vain.min(5))))
    }

    fn cap(&self) -> Moment {
        self.guards.iter().map(|guard| guard.cap).min().unwrap_or(Moment::NEVER)
    }

    /// Whether a claim with these options would be the same for the store.
    pub(super) fn suits(&self, member: Member, options: &LockOptions) -> bool {
        member == self.terms.member
            && self.terms.are_of(options)
            && options.max_hold.is_none()
            && self.cap() == Moment::NEVER
    }

    /// Whether the lease lasts for at least another quarter of its length, also if the store is silent from now on.
    pub(super) fn is_settled(&self, now: Moment) -> bool {
        let spare = now.plus(Duration::from_nanos(self.first_nanos).min(self.terms.ttl) / 4);
        self.is_held(now) && spare < self.limit() && !self.unanswered
    }

    /// The store confirmed the lease for `ttl` from `sent_at`, when the request was sent. Never shortens the lease.
    pub(super) fn prolong(&mut self, sent_at: Moment, ttl: Duration) {
        if self.deadline != Moment::NEVER {
            self.deadline = self.deadline.max(lease_deadline(sent_at, ttl));
        }
    }

    /// A renewal is sent at `now`. The next one is due as if this one were confirmed.
    pub(super) fn asks(&mut self, renewal: BatchId, now: Moment) {
        self.unanswered = true;
        self.renewal = Some(renewal);
        self.next_renewal = renewal_after(now, self.terms.ttl);
    }

    /// A renewal that was sent at `sent_at` was confirmed.
    pub(super) fn renewed(&mut self, sent_at: Moment) {
        self.unanswered = false;
        self.prolong(sent_at, self.terms.ttl);
        if self.renewal.is_none() {
            self.next_renewal = renewal_after(sent_at, self.terms.ttl);
        }
    }

    /// Another level of a session joins the lease, by a claim that was sent at `sent_at` and prolonged the lease.
    pub(super) fn reentered(&mut self, sent_at: Moment, ttl: Duration) {
        self.prolong(sent_at, ttl);
        self.next_renewal = self.next_renewal.min(renewal_after(sent_at, self.terms.ttl));
    }

    pub(super) fn granted(&self, key: KeyId, entry: &GuardEntry) -> Granted<L> {
        Granted {
            guard: GuardRef { key, lease: self.id, guard: entry.id },
            owner: entry.owner,
            number: entry.number,
            cell: self.cell.clone(),
        }
    }
}

/// Whether the claims for both options would be the same.
pub(super) fn alike(one: &LockOptions, other: &LockOptions) -> bool {
    one.ttl == other.ttl && one.renew == other.renew && one.label == other.label && one.reason == other.reason
}

pub(super) fn cap_of(max_hold: Option<Duration>, since: Moment) -> Moment {
    max_hold.map_or(Moment::NEVER, |cap| since.plus(cap))
}

/// When a lease is renewed: a third of its length after `sent_at`, rounded up so that leases of about the same age share a
/// batch.
fn renewal_after(sent_at: Moment, ttl: Duration) -> Moment {
    const GRID_NANOS: u64 = 16_000_000;
    let third = sent_at.plus(ttl / 3);
    if ttl < Duration::from_secs(1) { third } else { Moment::from_nanos(third.as_nanos().next_multiple_of(GRID_NANOS)) }
}
