use super::super::State;
use super::super::backoff::BackOff;
use super::super::event::{BatchId, End, GuardId, GuardRef, LeaseCell, LeaseId, Member, RequestId, WaiterId};
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
use super::encode::{CELL, Encoder, HANDLE};
use super::world::{Handle, LeaseNote};
use crate::{GrantRef, LockOptions, LossReason, Mode};

impl Encoder {
    pub(super) fn state(&mut self, state: &State<Handle, LeaseNote>) {
        let State { keys, members, schedule: _, next_id: _ } = state;
        let now = self.now;
        self.list(members, |to, (Member(member), engine)| {
            let Engine { traits: _, closed, kept, under_way, places: _, terms: _, round_trip, repeats_at } = engine;
            to.put(*member);
            to.flag(*kept);
            to.flag(*closed);
            to.count(*under_way);
            to.length(round_trip.usual() * 2);
            to.flag(*repeats_at > now);
        });
        self.list(keys.iter(), |to, (_, slot)| to.slot(slot));
    }

    fn slot(&mut self, slot: &KeyEntry<Handle, LeaseNote>) {
        match slot {
            KeyEntry::Empty => unreachable!("a known key has a slot that is not empty"),
            KeyEntry::Held(held) => {
                self.put(60);
                self.lease(&held.clone().lease());
                self.flag(held.is_busy());
                self.future(held.noted());
            }
            KeyEntry::Whole(key) => self.key(key),
        }
    }

    pub(super) fn key(&mut self, key: &Key<Handle, LeaseNote>) {
        let Key { name: _, id: _, queue, leases, store, noted } = key;
        let Queue { waiters, over, asleep, offers, vain } = queue;
        let InStore {
            claims,
            take_overs,
            releases,
            lost,
            subscription,
            wants_notifications,
            changes,
            last_answer,
            busy_until,
            session,
            yield_until,
        } = store;
        self.list(waiters, Self::waiter);
        self.count(*over);
        self.list(asleep, Self::waiter);
        self.put(u64::from(*vain.min(&2)));
        self.list(offers, |to, offer| {
            let Offer { waiter, until, calls_at, called: WaiterId(called), calls, guard, taken_over } = offer;
            to.flag(*taken_over);
            to.waiter(waiter);
            to.option(*until, Self::future);
            to.future(*calls_at);
            to.id(*called);
            to.count(*calls.min(&4));
            to.guard(guard);
        });
        self.list(claims, |to, claim| to.claim(claim, *changes));
        self.list(take_overs, Self::take_over);
        self.list(leases, Self::lease);
        self.list(releases, Self::release);
        // They are forgotten so late that no search comes there.
        self.list(lost, |to, LostEpoch { member, epoch, until: _ }| {
            to.put(member.0);
            to.epoch(*epoch);
        });
        let Subscription { state, not_before, pauses, vain: _, heeds_at: _ } = subscription;
        match state {
            Subscribed::No => self.put(70),
            Subscribed::Asked(RequestId(_, request), Member(by))
            | Subscribed::Yes(RequestId(_, request), Member(by)) => {
                self.put(if matches!(state, Subscribed::Yes(..)) { 71 } else { 72 });
                self.id(*request);
                self.put(*by);
            }
        }
        self.future(*not_before);
        self.pauses(pauses);
        self.flag(*wants_notifications);
        self.option(last_answer.as_ref(), Self::last_answer);
        self.future(*busy_until);
        self.future(*yield_until);
        self.option(*session, |to, session| to.put(session.0));
        self.future(*noted);
    }

    pub(super) fn waiter(&mut self, waiter: &Waiter<Handle>) {
        let Waiter {
            id,
            handle,
            member,
            session: _,
            mode,
            options,
            limit,
            is_try,
            is_over,
            claim_under_way,
            next_claim_at,
            polling,
            failing,
            last,
        } = waiter;
        let WaiterId(id) = id;
        self.id(*id);
        self.put(HANDLE | u64::from(handle.0));
        self.put(member.0);
        self.mode(*mode);
        self.options(options);
        self.future(*limit);
        self.flag(*is_try);
        self.flag(*is_over);
        self.flag(*claim_under_way);
        self.future(*next_claim_at);
        self.pauses(polling);
        self.pauses(failing);
        self.option(last.as_ref(), Self::last_answer);
    }

    fn take_over(&mut self, pending: &PendingTakeOver<Handle>) {
        let PendingTakeOver { waiter, member, grant, old, number, options, writer, request, sent_at, overdue_at } =
            pending;
        self.grant(old);
        self.option(writer.as_ref(), |to, DowngradedWriter { ttl, may_be_late }| {
            to.length(*ttl);
            to.flag(*may_be_late);
        });
        self.option(waiter.as_ref(), Self::waiter);
        self.put(member.0);
        self.grant(grant);
        self.put(u64::from(*number));
        self.options(options);
        let RequestId(_, request) = request;
        self.id(*request);
        self.past(*sent_at);
        self.future(*overdue_at);
    }

    pub(super) fn claim(&mut self, claim: &PendingClaim<Handle>, changes: Changes) {
        let PendingClaim {
            owner,
            member,
            mode,
            options,
            for_waiter,
            phase,
            sent_at,
            unanswered,
            join_limit,
            seen,
            position,
        } = claim;
        self.owner(*owner);
        self.put(member.0);
        self.mode(*mode);
        self.options(options);
        self.option(*for_waiter, |to, WaiterId(for_waiter)| to.id(for_waiter));
        match phase {
            Phase::Placed => self.put(0),
            Phase::Sent { request: RequestId(_, request), by, overdue_at, message } => {
                self.put(1);
                self.id(*request);
                self.option(*by, |to, by| to.put(HANDLE | u64::from(by.0)));
                self.future(*overdue_at);
                self.option(*message, Self::epoch);
            }
            Phase::Abandoned(RequestId(_, request)) => {
                self.put(2);
                self.id(*request);
            }
        }
        self.past(*sent_at);
        self.flag(*unanswered);
        self.id(*join_limit);
        // Only whether there was news since counts.
        let Changes { freed, notified } = seen;
        self.flag(*freed == changes.freed);
        self.flag(*notified == changes.notified);
        self.option(*position, |to, QueuePosition { epochs, lease, notifies }| {
            to.option(epochs, |to, (before, latest)| {
                to.epoch(before);
                to.epoch(latest);
            });
            to.first(lease);
            to.flag(notifies);
        });
    }

    pub(super) fn lease(&mut self, lease: &Lease<LeaseNote>) {
        let Lease {
            id,
            terms,
            since,
            first_nanos,
            deadline,
            next_renewal,
            renewal,
            unanswered,
            may_be_late,
            guards,
            cell,
            end,
            owes_release,
        } = lease;
        self.flag(*owes_release);
        self.id(id.0);
        let Terms { member, reentrant: _, session: _, ttl, renew, max_hold, known, .. } = &**terms;
        self.put(member.0);
        self.grant(&cell.grant());
        self.length(*ttl);
        self.flag(*renew);
        self.option(*max_hold, Self::length);
        self.flag(*known);
        self.past(*since);
        self.length(std::time::Duration::from_nanos(*first_nanos));
        self.future(*deadline);
        self.future(*next_renewal);
        self.option(*renewal, |to, BatchId(batch)| to.id(batch.get()));
        self.flag(*unanswered);
        self.flag(*may_be_late);
        self.list(guards, |to, GuardEntry { id: GuardId(id), owner, number, renew, cap }| {
            to.id(*id);
            to.owner(*owner);
            to.put(u64::from(*number));
            to.flag(*renew);
            to.future(*cap);
        });
        self.put(CELL | u64::from(cell.id));
        self.option(*end, Self::end);
    }

    pub(super) fn release(&mut self, release: &PendingRelease<Handle>) {
        let PendingRelease {
            member,
            grant,
            ttl,
            by,
            alone,
            request,
            has_failed,
            again_at,
            give_up_at,
            pauses,
            may_be_late,
            late_pause,
        } = release;
        self.put(member.0);
        self.grant(grant);
        self.length(*ttl);
        self.flag(*alone);
        self.option(*by, |to, by| to.put(HANDLE | u64::from(by.0)));
        self.option(*request, |to, RequestId(_, request)| to.id(request));
        self.flag(*has_failed);
        self.future(*again_at);
        self.future(*give_up_at);
        self.pauses(pauses);
        self.flag(*may_be_late);
        self.option(*late_pause, Self::length);
    }

    pub(super) fn first(&mut self, first: FirstLease) {
        let FirstLease { length, sent_at, ends, from_notification } = first;
        self.length(length);
        self.past(sent_at);
        self.flag(ends);
        self.flag(from_notification);
    }

    pub(super) fn grant(&mut self, grant: &GrantRef) {
        let GrantRef { key: _, owner, mode, epoch } = grant;
        self.owner(*owner);
        self.mode(*mode);
        self.option(*epoch, Self::epoch);
    }

    pub(super) fn guard(&mut self, guard: &GuardRef) {
        let GuardRef { key: _, lease: LeaseId(lease), guard: GuardId(guard) } = guard;
        self.id(*lease);
        self.id(*guard);
    }

    pub(super) fn options(&mut self, options: &LockOptions) {
        let LockOptions { ttl, wait: _, renew, max_hold, label: _, reason: _, given: _, warn_after: _ } = options;
        self.length(*ttl);
        self.flag(*renew);
        self.option(*max_hold, Self::length);
    }

    pub(super) fn pauses(&mut self, pauses: &BackOff) {
        let BackOff { step, longest } = pauses;
        self.length(*step);
        self.length(*longest);
    }

    pub(super) fn last_answer(&mut self, last_answer: &LastAnswer) {
        match last_answer {
            LastAnswer::Busy => self.put(80),
            LastAnswer::Failed(error) => self.error(error),
        }
    }

    pub(super) fn end(&mut self, end: End) {
        self.put(match end {
            End::Released => 90,
            End::Detached => 91,
            End::Lost(LossReason::Expired) => 92,
            End::Lost(LossReason::Stolen) => 93,
            End::Lost(LossReason::ForceReleased) => 94,
            End::Lost(LossReason::MaxHold) => 95,
            End::Lost(LossReason::Unreachable) => 96,
            End::Lost(LossReason::Shutdown) => 97,
        });
    }

    pub(super) fn mode(&mut self, mode: Mode) {
        self.flag(mode == Mode::Shared);
    }
}
