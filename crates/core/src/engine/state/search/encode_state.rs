use super::super::State;
use super::super::backoff::BackOff;
use super::super::event::{End, GuardId, GuardRef, LeaseCell, LeaseId, Member, RequestId, WaiterId};
use super::super::key::Key;
use super::super::keys::Slot;
use super::super::lease::{FirstLease, Lease, Standing};
use super::super::pending::{Before, LostEpoch, PendingClaim, PendingRelease, PendingTakeOver, Place};
use super::super::step::Engine;
use super::super::subscription::{Subscribed, Subscription};
use super::super::waiter::{News, Offer, Said, Waiter};
use super::encode::{CELL, Encoder, HANDLE};
use super::world::{Handle, LeaseNote};
use crate::{GrantRef, LockOptions, LossReason, Mode};

impl Encoder {
    pub(super) fn state(&mut self, state: &State<Handle, LeaseNote>) {
        let State { keys, members, schedule: _, next_id: _ } = state;
        self.list(members, |to, (Member(member), engine)| {
            let Engine { traits: _, closed, kept, under_way, places: _, round_trip } = engine;
            to.put(*member);
            to.flag(*kept);
            to.flag(*closed);
            to.count(*under_way);
            to.length(*round_trip * 2);
        });
        self.list(keys.iter(), |to, (_, slot)| to.slot(slot));
    }

    fn slot(&mut self, slot: &Slot<Handle, LeaseNote>) {
        match slot {
            Slot::Empty => unreachable!("a known key has a slot that is not empty"),
            Slot::Held(lease, noted, busy) => {
                self.put(60);
                self.lease(lease);
                self.flag(*busy);
                self.future(*noted);
            }
            Slot::Whole(key) => self.key(key),
        }
    }

    pub(super) fn key(&mut self, key: &Key<Handle, LeaseNote>) {
        let Key {
            name: _,
            id: _,
            waiters,
            over,
            offers,
            claims,
            take_overs,
            leases,
            releases,
            lost,
            subscription,
            wants_notifications,
            news,
            said,
            busy_until,
            rest_until,
            store_session,
            noted,
        } = key;
        self.list(waiters, Self::waiter);
        self.count(*over);
        self.list(offers, |to, offer| {
            let Offer { waiter, until, guard, taken_over } = offer;
            to.flag(*taken_over);
            to.waiter(waiter);
            to.option(*until, Self::future);
            to.guard(guard);
        });
        self.list(claims, |to, claim| to.claim(claim, *news));
        self.list(take_overs, Self::take_over);
        self.list(leases, Self::lease);
        self.list(releases, Self::release);
        // They are forgotten so late that no search comes there.
        self.list(lost, |to, LostEpoch { member, epoch, until: _ }| {
            to.put(member.0);
            to.epoch(*epoch);
        });
        let Subscription { state, not_before, pauses } = subscription;
        match state {
            Subscribed::No => self.put(70),
            Subscribed::Asked(RequestId(request), Member(by)) | Subscribed::Yes(RequestId(request), Member(by)) => {
                self.put(if matches!(state, Subscribed::Yes(..)) { 71 } else { 72 });
                self.id(*request);
                self.put(*by);
            }
        }
        self.future(*not_before);
        self.pauses(pauses);
        self.flag(*wants_notifications);
        self.option(said.as_ref(), Self::said);
        self.future(*busy_until);
        self.future(*rest_until);
        self.option(*store_session, |to, session| to.put(session.0));
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
            asks,
            ask_at,
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
        self.flag(*asks);
        self.future(*ask_at);
        self.pauses(polling);
        self.pauses(failing);
        self.option(last.as_ref(), Self::said);
    }

    fn take_over(&mut self, pending: &PendingTakeOver<Handle>) {
        let PendingTakeOver { waiter, member, grant, old, number, options, writer, request, sent_at, overdue_at } =
            pending;
        self.grant(old);
        self.option(writer.as_ref(), |to, Before { ttl, echoes }| {
            to.length(*ttl);
            to.flag(*echoes);
        });
        self.option(waiter.as_ref(), Self::waiter);
        self.put(member.0);
        self.grant(grant);
        self.put(u64::from(*number));
        self.options(options);
        let RequestId(request) = request;
        self.id(*request);
        self.past(*sent_at);
        self.future(*overdue_at);
    }

    pub(super) fn claim(&mut self, claim: &PendingClaim<Handle>, news: News) {
        let PendingClaim {
            owner,
            member,
            mode,
            options,
            asker,
            by,
            request,
            sent_at,
            overdue_at,
            abandoned,
            unanswered,
            message,
            horizon,
            seen,
            place,
        } = claim;
        self.owner(*owner);
        self.put(member.0);
        self.mode(*mode);
        self.options(options);
        self.option(*asker, |to, WaiterId(asker)| to.id(asker));
        self.option(*by, |to, by| to.put(HANDLE | u64::from(by.0)));
        self.option(*request, |to, RequestId(request)| to.id(request));
        self.past(*sent_at);
        self.future(*overdue_at);
        self.flag(*abandoned);
        self.flag(*unanswered);
        self.option(*message, Self::epoch);
        self.id(*horizon);
        // Only whether there was news since counts.
        let News { freed, heard } = seen;
        self.flag(*freed == news.freed);
        self.flag(*heard == news.heard);
        self.option(*place, |to, Place { epochs, lease, told }| {
            to.option(epochs, |to, (before, latest)| {
                to.epoch(before);
                to.epoch(latest);
            });
            to.first(lease);
            to.flag(told);
        });
    }

    pub(super) fn lease(&mut self, lease: &Lease<LeaseNote>) {
        let Lease {
            id,
            key: _,
            member,
            reentrant: _,
            session: _,
            options,
            since,
            first_length,
            deadline,
            next_renewal,
            renewal,
            unanswered,
            echoes,
            guards,
            cell,
            end,
            owes_release,
        } = lease;
        self.flag(*owes_release);
        self.id(id.0);
        self.put(member.0);
        self.grant(cell.grant());
        self.length(options.ttl);
        self.flag(options.renew);
        self.flag(options.known);
        self.past(*since);
        self.length(*first_length);
        self.future(*deadline);
        self.future(*next_renewal);
        self.option(*renewal, |to, RequestId(request)| to.id(request));
        self.flag(*unanswered);
        self.flag(*echoes);
        self.list(guards, |to, Standing { id: GuardId(id), owner, number, renew, cap }| {
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
        let PendingRelease { member, grant, ttl, by, alone, request, again_at, give_up_at, pauses, echoes, echo } =
            release;
        self.put(member.0);
        self.grant(grant);
        self.length(*ttl);
        self.flag(*alone);
        self.option(*by, |to, by| to.put(HANDLE | u64::from(by.0)));
        self.option(*request, |to, RequestId(request)| to.id(request));
        self.future(*again_at);
        self.future(*give_up_at);
        self.pauses(pauses);
        self.flag(*echoes);
        self.option(*echo, Self::length);
    }

    pub(super) fn first(&mut self, first: FirstLease) {
        let FirstLease { length, sent_at, ends, told } = first;
        self.length(length);
        self.past(sent_at);
        self.flag(ends);
        self.flag(told);
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
        let LockOptions { ttl, wait: _, renew, max_hold, label: _, reason: _, given: _ } = options;
        self.length(*ttl);
        self.flag(*renew);
        self.option(*max_hold, Self::length);
    }

    pub(super) fn pauses(&mut self, pauses: &BackOff) {
        let BackOff { step, longest } = pauses;
        self.length(*step);
        self.length(*longest);
    }

    pub(super) fn said(&mut self, said: &Said) {
        match said {
            Said::Busy => self.put(80),
            Said::Failed(error) => self.error(error),
        }
    }

    pub(super) fn end(&mut self, end: End) {
        self.put(match end {
            End::LetGo => 90,
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
