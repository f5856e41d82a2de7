//! A lease that is held by this process: its deadline, its renewals and the guards on it.

use std::time::Duration;

use smallvec::SmallVec;

use super::event::{End, Granted, GuardId, GuardRef, KeyId, LeaseCell, LeaseId, Member, RequestId, Traits};
use super::rules::{Rule, left_out};
use crate::clock::{Moment, lease_deadline};
use crate::options::Text;
use crate::{GrantRef, LockKey, LockOptions, LossReason, Mode, OwnerId, SessionId};

/// One stretch in which the store has an owner of this process as the holder, and all that is known of it here.
#[derive(Clone, Debug)]
#[allow(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub(super) struct Lease<L> {
    pub(super) id: LeaseId,
    /// As in the grant, which is not as near.
    pub(super) key: LockKey,
    pub(super) member: Member,
    pub(super) reentrant: bool,
    pub(super) session: Option<SessionId>,
    /// What it was asked for with.
    pub(super) options: Terms,
    pub(super) since: Moment,
    pub(super) first_length: Duration,
    pub(super) deadline: Moment,
    pub(super) next_renewal: Moment,
    /// The renewal under way. Where its answer has not come when the next is due, none will come in time.
    pub(super) renewal: Option<RequestId>,
    /// A renewal was sent, and none has been confirmed since.
    pub(super) unanswered: bool,
    /// A claim of this owner may reach the store late.
    pub(super) may_be_late: bool,
    /// The guards on it: one, or the levels of a session, or readers that share a grant.
    pub(super) guards: SmallVec<[GuardEntry; 1]>,
    pub(super) cell: L,
    /// How it ended, as long as guards are there that have to be told, or give it back.
    pub(super) end: Option<End>,
    /// The store may still have it; it is given back with the last guard.
    pub(super) owes_release: bool,
}

/// What the store was told with a claim.
#[derive(Clone, Debug)]
pub(super) struct Terms {
    pub(super) ttl: Duration,
    pub(super) renew: bool,
    label: Option<Text>,
    reason: Option<Text>,
    /// False for a lease that was attached: the store shows the texts of whoever claimed it.
    pub(super) known: bool,
}

impl Terms {
    fn of(options: &LockOptions) -> Self {
        let LockOptions { ttl, renew, label, reason, wait: _, max_hold: _, given: _ } = options;
        Self { ttl: *ttl, renew: *renew, label: label.clone(), reason: reason.clone(), known: true }
    }

    fn are_of(&self, options: &LockOptions) -> bool {
        let same_texts = self.known && self.label == options.label && self.reason == options.reason;
        same_texts && self.ttl == options.ttl && self.renew == options.renew
    }
}

/// A guard on a lease, and what it asks for as long as it is there.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct GuardEntry {
    pub(super) id: GuardId,
    pub(super) owner: OwnerId,
    /// How many had the lease before, or which co-reader it is.
    pub(super) number: u16,
    pub(super) renew: bool,
    pub(super) cap: Moment,
}

/// The lease that a grant begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct FirstLease {
    pub(super) length: Duration,
    /// A moment before which the store cannot have granted it, so that the deadline errs early.
    pub(super) sent_at: Moment,
    /// False for a lock that has no deadline.
    pub(super) ends: bool,
    /// Nobody but a message says so, and somebody may have forged it.
    pub(super) from_notification: bool,
}

/// How long a grant out of the store's queue stays unconfirmed and with its short first lease: who is done by then has
/// cost no renewal.
const SOON: Duration = Duration::from_millis(20);

/// How long a grant waits for its waiter at most before it goes to the next.
const UNTAKEN: Duration = Duration::from_secs(1);

impl FirstLease {
    /// When it has to be regarded as over here.
    pub(super) fn deadline(&self) -> Moment {
        if self.ends { lease_deadline(self.sent_at, self.length) } else { Moment::NEVER }
    }

    /// Whether a renewal soon makes it what was asked for.
    pub(super) fn is_provisional(&self, ttl: Duration) -> bool {
        self.from_notification || self.length < ttl
    }
}

impl<L: LeaseCell> Lease<L> {
    pub(super) fn new(
        id: LeaseId,
        member: Member,
        traits: &Traits,
        grant: GrantRef,
        options: &LockOptions,
        first: FirstLease,
        now: Moment,
    ) -> Self {
        let third = renewal_after(first.sent_at, first.length.min(options.ttl));
        let next_renewal = if first.is_provisional(options.ttl) { now.plus(SOON).min(third) } else { third };
        let limit = first.deadline().min(cap_of(options, now));
        Self {
            id,
            key: grant.key.clone(),
            member,
            reentrant: traits.reentrant,
            session: traits.session,
            options: Terms::of(options),
            since: now,
            first_length: first.length,
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

    /// What the store granted.
    pub(super) fn grant(&self) -> &GrantRef {
        self.cell.grant()
    }

    /// As the store knows one of its guards.
    pub(super) fn grant_of(&self, owner: OwnerId) -> GrantRef {
        GrantRef { owner, ..self.grant().clone() }
    }

    /// Whether it is of a session for which this caller asks.
    pub(super) fn admits(&self, member: Member, session: Option<SessionId>) -> bool {
        self.reentrant && (self.member == member || (session.is_some() && self.session == session))
    }

    pub(super) fn is_reentrant(&self) -> bool {
        self.reentrant
    }

    pub(super) fn is_exclusive(&self) -> bool {
        self.grant().mode == Mode::Exclusive
    }

    pub(super) fn is_held(&self, now: Moment) -> bool {
        self.end.is_none() && now < self.limit()
    }

    /// When it ends unless it is renewed.
    pub(super) fn limit(&self) -> Moment {
        self.deadline.min(self.cap())
    }

    /// Why it ends, when it ends by the clock.
    pub(super) fn reason(&self) -> LossReason {
        match () {
            () if self.cap() <= self.deadline => LossReason::MaxHold,
            () if self.unanswered => LossReason::Unreachable,
            () => LossReason::Expired,
        }
    }

    /// When it needs attention next.
    pub(super) fn next_event(&self) -> Moment {
        if self.end.is_some() {
            return Moment::NEVER;
        }
        self.next_renewal().min(self.limit())
    }

    /// When it is to be renewed: what one guard asks for ends with it.
    pub(super) fn next_renewal(&self) -> Moment {
        if self.guards.iter().any(|guard| guard.renew) { self.next_renewal } else { Moment::NEVER }
    }

    /// Until when a grant is kept for a waiter that does not come for it.
    pub(super) fn offered_until(&self, now: Moment) -> Moment {
        now.plus((self.options.ttl / 3).min(UNTAKEN))
    }

    fn cap(&self) -> Moment {
        self.guards.iter().map(|guard| guard.cap).min().unwrap_or(Moment::NEVER)
    }

    /// Whether the store would not tell it from what these options ask for.
    pub(super) fn suits(&self, member: Member, options: &LockOptions) -> bool {
        member == self.member
            && self.options.are_of(options)
            && options.max_hold.is_none()
            && self.cap() == Moment::NEVER
    }

    /// Whether it certainly stays ours for a quarter of its length, also if the store falls silent now.
    pub(super) fn is_settled(&self, now: Moment) -> bool {
        let spare = now.plus(self.first_length.min(self.options.ttl) / 4);
        let lasts = spare < self.limit() || left_out(Rule::Settled);
        self.is_held(now) && lasts && (!self.unanswered || left_out(Rule::NoDoubt))
    }

    /// The store confirmed it, on a request that left at `sent_at`, for `ttl` from then.
    pub(super) fn prolong(&mut self, sent_at: Moment, ttl: Duration) {
        if self.deadline != Moment::NEVER {
            let confirmed = lease_deadline(sent_at, ttl);
            self.deadline = if left_out(Rule::NeverShorter) { confirmed } else { self.deadline.max(confirmed) };
        }
    }

    /// A renewal leaves at `now`. The next is due when it would be if that is confirmed.
    pub(super) fn asks(&mut self, renewal: RequestId, now: Moment) {
        self.unanswered = true;
        self.renewal = Some(renewal);
        self.next_renewal = renewal_after(now, self.options.ttl);
    }

    /// A renewal that left at `sent_at` was confirmed.
    pub(super) fn renewed(&mut self, sent_at: Moment) {
        self.unanswered = false;
        self.prolong(sent_at, self.options.ttl);
        if self.renewal.is_none() {
            self.next_renewal = renewal_after(sent_at, self.options.ttl);
        }
    }

    /// Another guard stands on it, by a grant that left at `sent_at` and prolonged the lease.
    pub(super) fn reentered(&mut self, sent_at: Moment, ttl: Duration) {
        self.prolong(sent_at, ttl);
        self.next_renewal = self.next_renewal.min(renewal_after(sent_at, self.options.ttl));
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

/// Whether the store would get the same claim for both.
pub(super) fn alike(one: &LockOptions, other: &LockOptions) -> bool {
    one.ttl == other.ttl && one.renew == other.renew && one.label == other.label && one.reason == other.reason
}

pub(super) fn cap_of(options: &LockOptions, since: Moment) -> Moment {
    options.max_hold.map_or(Moment::NEVER, |cap| since.plus(cap))
}

/// A third of the lease after it was granted, rounded up so that leases of about the same age share a batch.
fn renewal_after(sent_at: Moment, ttl: Duration) -> Moment {
    const GRID_NANOS: u64 = 16_000_000;
    let third = sent_at.plus(ttl / 3);
    if ttl < Duration::from_secs(1) { third } else { Moment::from_nanos(third.as_nanos().next_multiple_of(GRID_NANOS)) }
}
