use super::super::State;
use super::super::backoff::BackOff;
use super::super::check::LeaseNote;
use super::super::event::{End, GuardId, GuardRef, LeaseCell, LeaseId, Member, WaiterId};
use super::super::in_store::InStore;
use super::super::key::Key;
use super::super::keys::KeyEntry;
use super::super::lease::{FirstLease, GuardEntry, Lease, Terms};
use super::super::pending::{
    DowngradedWriter, LostEpoch, PendingClaim, PendingRelease, PendingTakeOver, Phase, QueuePosition,
};
use super::super::queue::Queue;
use super::super::step::Engine;
use super::super::subscription::{Subscribed, Subscription};
use super::super::waiter::{Changes, LastAnswer, Offer, Waiter};
use super::encode::{Cell, Encode, Encoder, Epoch, Id, Past, encoded, epochs, words};
use super::world::Handle;
use crate::LockOptions;

encoded! {
    Queue<Handle> { waiters, over, asleep, vain as a_few, offers }
    Offer<Handle> { taken_over, waiter, until, calls_at, called, calls as some, guard }
    Subscription { state, not_before, pauses; vain, heeds_at }
    // They are forgotten so late that no search comes there.
    LostEpoch { member, epoch as Epoch; until }
    Waiter<Handle> {
        id, handle, member, mode, options, limit, is_try, is_over, claim_under_way, next_claim_at, polling, failing, last;
        session
    }
    PendingTakeOver<Handle> {
        old, writer, waiter, member, grant, number, options, request, sent_at as Past, overdue_at
    }
    DowngradedWriter { ttl, may_be_late }
    PendingClaim<Handle> {
        owner, member, mode, options, for_waiter, phase, sent_at as Past, unanswered, join_limit as Id, seen, position
    }
    QueuePosition { epochs as both_epochs, lease, notifies }
    FirstLease { length, sent_at as Past, ends, from_notification }
    Lease<LeaseNote> {
        owes_release, id, terms, cell, since as Past, first_nanos as nanos, deadline, next_renewal, renewal, unanswered,
        may_be_late, guards, end
    }
    GuardEntry { id, owner, number, renew, cap }
    PendingRelease<Handle> {
        member, grant, ttl, alone, by, request, has_failed, again_at, give_up_at, pauses, may_be_late, late_pause
    }
    GuardRef { lease, guard; key }
    LockOptions { ttl, renew, max_hold; wait, label, reason, given, warn_after }
    BackOff { step, longest }
}

fn a_few(vain: u32) -> u64 {
    vain.min(2).into()
}

fn some(calls: usize) -> usize {
    calls.min(4)
}

fn nanos(length: u64) -> std::time::Duration {
    std::time::Duration::from_nanos(length)
}

fn both_epochs(both: Option<(u64, u64)>) -> Option<(Epoch, Epoch)> {
    both.map(|(before, latest)| (Epoch(before), Epoch(latest)))
}

words! {
    Member: |member, _| member.0;
    WaiterId: |id, to| to.id(id.0);
    LeaseId: |id, to| to.id(id.0);
    GuardId: |id, to| to.id(id.0);
    End: |end, _| match *end {
        End::Released => 90,
        End::Detached => 91,
        End::Lost(reason) => 92 + reason as u64,
    };
}

impl Encode for State<Handle, LeaseNote> {
    fn encode(&self, to: &mut Encoder) {
        let Self { keys, members, schedule: _, next_id: _ } = self;
        to.list(members);
        to.list(keys.iter().map(|(_, slot)| slot));
    }
}

impl Encode for Engine {
    fn encode(&self, to: &mut Encoder) {
        let Self { traits: _, closed, kept, under_way, places: _, terms: _, round_trip, repeats_at } = self;
        let repeats = *repeats_at > to.now;
        to.all(&[kept, closed, under_way, &(round_trip.usual() * 2), &repeats]);
    }
}

impl Encode for KeyEntry<Handle, LeaseNote> {
    fn encode(&self, to: &mut Encoder) {
        match self {
            Self::Empty => unreachable!("a known key has a slot that is not empty"),
            Self::Held(held) => to.all(&[&60_u64, &held.clone().lease(), &held.is_busy(), &held.noted()]),
            Self::Whole(key) => key.encode(to),
        }
    }
}

impl Encode for Key<Handle, LeaseNote> {
    fn encode(&self, to: &mut Encoder) {
        let Self { name: _, id: _, queue, leases, store, noted } = self;
        let InStore {
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
        } = store;
        to.changes = *changes;
        to.all(&[queue, claims, take_overs, leases, releases, lost, mark, subscription, wants_notifications]);
        to.all(&[last_answer, busy_until, yield_until, session, noted]);
    }
}

/// Only whether there was news since counts.
impl Encode for Changes {
    fn encode(&self, to: &mut Encoder) {
        let Self { freed, notified } = to.changes;
        to.all(&[&(self.freed == freed), &(self.notified == notified)]);
    }
}

impl Encode for Subscribed {
    fn encode(&self, to: &mut Encoder) {
        match self {
            Self::No => to.put(70),
            Self::Yes(request, by) => to.all(&[&71_u64, request, by]),
            Self::Asked(request, by) => to.all(&[&72_u64, request, by]),
        }
    }
}

impl Encode for Phase<Handle> {
    fn encode(&self, to: &mut Encoder) {
        match self {
            Self::Placed => to.put(0),
            Self::Sent { request, by, overdue_at, message } => {
                to.all(&[&1_u64, request, by, overdue_at, &epochs(*message)]);
            }
            Self::Abandoned(request) => to.all(&[&2_u64, request]),
        }
    }
}

impl Encode for std::sync::Arc<Terms> {
    fn encode(&self, to: &mut Encoder) {
        let Terms { member, reentrant: _, session: _, ttl, renew, max_hold, known, .. } = &**self;
        to.all(&[member, ttl, renew, max_hold, known]);
    }
}

impl Encode for LeaseNote {
    fn encode(&self, to: &mut Encoder) {
        to.all(&[&self.grant(), &Cell(self.id)]);
    }
}

impl Encode for LastAnswer {
    fn encode(&self, to: &mut Encoder) {
        match self {
            Self::Busy => to.put(80),
            Self::Failed(error) => error.encode(to),
        }
    }
}
