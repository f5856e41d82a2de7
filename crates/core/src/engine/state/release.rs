//! How guards and leases end, and how a grant is released in the store, also after failures.

use std::time::Duration;

use super::event::{Action, End, GuardRef, GuardRelease, LeaseCell, LeaseId, Member, Outcome, Request, RequestId};
use super::key::Key;
use super::lease::Lease;
use super::pending::PendingRelease;
use super::step::Step;
use super::waiter::Waiter;
use crate::{Error, ErrorKind, GrantRef, LeaseStatus, LossReason, Mode, OwnerId, Result};

const FIRST_LATE_RELEASE: Duration = Duration::from_secs(1);
const LAST_LATE_RELEASE: Duration = Duration::from_secs(32);
/// The longest time by which a request may be late.
pub(super) const LATE: Duration = Duration::from_secs(64);

impl<W: Clone, L: LeaseCell> Key<W, L> {
    /// Releases a grant in the store, and tries again for as long as its lease could last.
    pub(super) fn release(
        &mut self,
        step: &mut Step<'_, W, L>,
        member: Member,
        grant: GrantRef,
        ttl: Duration,
        may_be_late: bool,
        by: Option<W>,
    ) {
        let alone = by.is_some() && self.queue.waiters.is_empty();
        step.begin(member);
        self.store.releases.push(PendingRelease {
            by,
            alone,
            may_be_late,
            ..PendingRelease::new(member, grant, ttl, step.now)
        });
        self.send_releases(step);
    }

    /// Releases what a late claim of an owner may still be granted, although that owner has nothing any more.
    pub(super) fn release_late(&mut self, step: &mut Step<'_, W, L>, member: Member, grant: GrantRef) {
        if !step.members[&member].closed {
            // The ttl of that claim is not known here.
            let mut late = PendingRelease::new(member, grant, LAST_LATE_RELEASE, step.now);
            late.again_after(FIRST_LATE_RELEASE, step.now);
            self.store.releases.push(late);
        }
    }

    pub(super) fn send_releases(&mut self, step: &mut Step<'_, W, L>) {
        let (key, now) = (self.id, step.now);
        let in_vain = |release: &mut PendingRelease<W>| {
            let overdue = release.request.is_some() && release.again_at <= now;
            overdue && (release.late_pause.is_some() || now >= release.give_up_at)
        };
        for release in self.store.releases.extract_if(.., in_vain) {
            if release.late_pause.is_none() {
                step.ended(release.member);
            }
        }
        for release in self.store.releases.iter_mut().filter(|release| release.again_at <= now) {
            let request = step.request(key);
            // If the answer does not come by then, the runtime that carries the request is not driven. Its caller hears the answer
            // there, if that ever is.
            release.by.take_if(|_| release.request.is_some());
            (release.request, release.again_at) = (Some(request), step.overdue(release.member));
            let sent = Request::Release(request, release.grant.clone());
            let alone = std::mem::take(&mut release.alone);
            step.send_by(release.member, sent, release.by.clone(), alone);
        }
    }

    pub(super) fn released(&mut self, step: &mut Step<'_, W, L>, request: RequestId, answer: Result<LeaseStatus>) {
        let Some(index) = self.store.releases.iter().position(|release| release.request == Some(request)) else {
            return;
        };
        let release = &mut self.store.releases[index];
        (release.request, release.by) = (None, None);
        if let Some(pause) = release.late_pause {
            let next = pause * 2;
            release.again_after(next, step.now);
            if next > LAST_LATE_RELEASE.min(release.ttl) || matches!(answer, Ok(LeaseStatus::Held)) {
                self.store.releases.swap_remove(index);
                self.freed();
            }
            return self.advance(step);
        }
        if let Err(error) = answer {
            let again = error.is_transient() && step.now < release.give_up_at;
            release.has_failed = true;
            let (member, pause) = (release.member, release.pauses.next(step.random, None));
            release.again_at = step.repeats_at(member, pause);
            step.out.push(Action::ReleaseFailed(self.name.clone(), error.clone()));
            if again {
                step.keep(member);
                return self.tell_blocked(step, &error);
            }
        }
        step.ended(release.member);
        if release.may_be_late && FIRST_LATE_RELEASE <= release.ttl && !step.members[&release.member].closed {
            release.again_after(FIRST_LATE_RELEASE, step.now);
        } else {
            self.store.releases.swap_remove(index);
        }
        self.freed();
        self.advance(step);
    }

    /// Answers waiters at their limit whose claims waited for a release of this process: they get the error of that release.
    fn tell_blocked(&mut self, step: &mut Step<'_, W, L>, error: &Error) {
        let blocked = |key: &Self| {
            key.queue
                .waiters
                .iter()
                .position(|waiter| waiter.is_over && !waiter.claim_under_way && key.fails_to_give_back(waiter.mode))
        };
        while let Some(index) = blocked(self) {
            self.dismiss(step, index, Outcome::Failed(error.clone()));
        }
        self.advance(step);
    }

    /// Whether a release failed of what would exclude who claims the key in this mode.
    pub(super) fn fails_to_give_back(&self, mode: Mode) -> bool {
        self.store.releases.iter().any(|release| release.has_failed && release.is_in_the_way(mode))
    }

    /// Ends a guard that is released or dropped. Its lease passes to the next waiter here, or is released in the store with
    /// its last guard. A lease that was lost has ended before.
    pub(super) fn release_guard(&mut self, step: &mut Step<'_, W, L>, guard: &GuardRef, by: Option<W>) -> GuardRelease {
        let found = |lease: &Lease<L>| lease.guards.iter().position(|entry| entry.id == guard.guard);
        let lease = self.leases.iter().position(|lease| lease.id == guard.lease);
        let Some(index) = lease else { return GuardRelease::Gone };
        let lease = &mut self.leases[index];
        let Some(entry) = found(lease) else { return GuardRelease::Gone };
        if lease.end.is_none() && self.pass_on(step, index, entry) {
            return GuardRelease::Passed;
        }
        self.end_guard(step, index, entry, by)
    }

    /// Ends this guard on this lease, and the lease with its last guard.
    fn end_guard(&mut self, step: &mut Step<'_, W, L>, index: usize, entry: usize, by: Option<W>) -> GuardRelease {
        let lease = &mut self.leases[index];
        let (id, before) = (lease.id, lease.limit());
        let entry = lease.guards.remove(entry);
        let (member, ttl, may_be_late) = (lease.terms.member, lease.terms.ttl, lease.may_be_late);
        let grant = lease.grant_of(entry.owner);
        // Readers that share a grant have one owner id, and each level of a session its own.
        let shared = lease.guards.iter().any(|other| other.owner == entry.owner);
        let (ended, owes) = (lease.end.is_some(), lease.owes_release && !shared);
        let renews = lease.guards.iter().any(|other| other.renew);
        if lease.guards.is_empty() {
            let lease = self.leases.remove(index);
            let (key, held_for) = (self.name.clone(), step.now.since(lease.since));
            let end = (!ended).then_some(Action::End { cell: lease.cell, key, end: End::Released, held_for });
            step.out.extend(end);
        } else {
            let limit = (!ended && before != lease.limit()).then(|| Action::Limit(lease.cell.clone(), lease.limit()));
            step.out.extend(limit);
        }
        if ended && owes {
            self.release(step, member, grant, ttl, may_be_late, None);
        } else if !ended && !shared {
            if !self.queue.waiters.is_empty() {
                self.detach_requests(step);
            }
            self.release(step, member, grant, ttl, may_be_late, by);
        } else if !ended && by.is_some() && renews {
            // The lease goes on with other readers, and may have been released by force: only the store knows.
            self.renew_now(step, id, by);
            self.advance(step);
            return GuardRelease::Asked;
        }
        self.advance(step);
        match (ended, shared) {
            (true, _) => GuardRelease::Gone,
            (false, true) => GuardRelease::Passed,
            (false, false) => GuardRelease::Sent,
        }
    }

    /// Leaves a lease in the store, for another process to attach. False if it is not held any more.
    pub(super) fn detach(&mut self, step: &mut Step<'_, W, L>, guard: &GuardRef) -> bool {
        let held = |lease: &&mut Lease<L>| lease.id == guard.lease && lease.end.is_none();
        let Some(lease) = self.leases.iter_mut().find(held) else { return false };
        lease.guards.retain(|entry| entry.id != guard.guard);
        if lease.guards.is_empty() {
            let id = lease.id;
            self.end(step, id, End::Detached);
        }
        self.advance(step);
        true
    }

    /// Ends a lease, for every reason but the release of its last guard: notifies its guards, stops its renewals, and
    /// releases what the store may still have. The release is sent at once where the lease does not end by itself, else with
    /// the guard.
    pub(super) fn end(&mut self, step: &mut Step<'_, W, L>, id: LeaseId, end: End) {
        use LossReason::{Expired, MaxHold, Shutdown, Stolen, Unreachable};

        let Some(index) = self.leases.iter().position(|lease| lease.id == id && lease.end.is_none()) else { return };
        let mut lease = self.leases.remove(index);
        lease.end = Some(end);
        lease.owes_release =
            matches!(end, End::Released | End::Lost(Expired | MaxHold | Unreachable | Stolen | Shutdown));
        let (cell, held_for) = (lease.cell.clone(), step.now.since(lease.since));
        step.out.push(Action::End { cell, key: self.name.clone(), end, held_for });
        let at_once = matches!(end, End::Released | End::Lost(MaxHold | Shutdown));
        let withdrawn = self.withdraw(step, &mut lease);
        if !self.queue.waiters.is_empty() {
            self.detach_requests(step);
        }
        let is_left = |owner: &OwnerId| lease.guards.iter().any(|entry| entry.owner == *owner);
        let mut owners: Vec<_> = withdrawn.into_iter().filter(|owner| !is_left(owner)).collect();
        if at_once {
            owners.extend(lease.guards.iter().map(|entry| entry.owner));
        }
        owners.dedup();
        if lease.owes_release {
            for owner in owners {
                self.release_of(step, &lease, owner);
            }
        }
        lease.owes_release &= !at_once;
        // A lease that its own max hold ended is released at once, and other levels of the session may hold the key all the
        // while.
        if matches!(end, End::Lost(reason) if reason != MaxHold) {
            self.store.note_lost(step.now, &lease);
        }
        // No new lease of a session may begin before its last guard is gone.
        if !lease.guards.is_empty() && (lease.owes_release || lease.is_reentrant()) {
            self.leases.push(lease);
        }
        self.freed();
    }

    fn release_of(&mut self, step: &mut Step<'_, W, L>, lease: &Lease<L>, owner: OwnerId) {
        self.release(step, lease.terms.member, lease.grant_of(owner), lease.terms.ttl, lease.may_be_late, None);
    }

    /// An operator released these leases by force.
    pub(super) fn force_released(&mut self, step: &mut Step<'_, W, L>, leases: &[LeaseId]) {
        for lease in leases {
            self.end(step, *lease, End::Lost(LossReason::ForceReleased));
        }
        self.freed();
        self.advance(step);
    }

    /// Closes an engine: it gets no guards from now on, and its leases are lost and released.
    pub(super) fn close(&mut self, step: &mut Step<'_, W, L>, member: Member) {
        self.detach_requests(step);
        let of_it = |lease: &&Lease<L>| lease.terms.member == member && lease.end.is_none();
        while let Some(lease) = self.leases.iter().find(of_it) {
            let lease = lease.id;
            self.end(step, lease, End::Lost(LossReason::Shutdown));
        }
        let lost: Vec<_> =
            self.leases.extract_if(.., |lease| lease.terms.member == member && lease.owes_release).collect();
        for lease in lost {
            for entry in &lease.guards {
                self.release_of(step, &lease, entry.owner);
            }
        }
        let is_closed = |waiter: &Waiter<W>| waiter.member == member;
        while let Some(index) = self.queue.waiters.iter().position(is_closed) {
            self.dismiss(step, index, Outcome::Failed(Error::new(ErrorKind::Closed, "acquire")));
        }
        for waiter in self.queue.asleep.extract_if(.., |waiter| is_closed(waiter)) {
            step.out.push(Action::Wake(waiter.handle, Outcome::Failed(Error::new(ErrorKind::Closed, "acquire"))));
        }
        self.close_take_overs(step, member);
        self.store.releases.retain(|release| release.member != member || release.late_pause.is_none());
        self.store.lost.retain(|lost| lost.member != member);
        if self.store.subscription.is_by(member) {
            self.unsubscribe(step);
        }
        self.advance(step);
    }

    /// Drops the releases of a closed engine that are under way: their leases free the keys.
    pub(super) fn abandon(&mut self, step: &mut Step<'_, W, L>, member: Member) {
        for _ in self.store.releases.extract_if(.., |release| release.member == member && release.late_pause.is_none())
        {
            step.ended(member);
        }
        self.advance(step);
    }

    /// Whether the key has anything of this engine.
    pub(super) fn concerns(&self, member: Member) -> bool {
        self.leases.iter().any(|lease| lease.terms.member == member)
            || self.queue.waiters.iter().chain(&self.queue.asleep).any(|waiter| waiter.member == member)
            || self.store.claims.iter().any(|claim| claim.member == member)
            || self.store.take_overs.iter().any(|pending| pending.member == member)
            || self.store.releases.iter().any(|release| release.member == member)
            || self.store.lost.iter().any(|lost| lost.member == member)
            || self.store.subscription.is_by(member)
    }

    /// Forgets an engine without handles, guards and requests.
    pub(super) fn forget(&mut self, member: Member) {
        self.queue.waiters.retain(|waiter| waiter.member != member);
        self.queue.asleep.retain(|waiter| waiter.member != member);
        self.queue.offers.retain(|offer| offer.waiter.member != member);
        self.store.claims.retain(|claim| claim.member != member);
        self.store.take_overs.retain(|pending| pending.member != member);
        self.leases.retain(|lease| lease.terms.member != member);
        self.store.releases.retain(|release| release.member != member);
        self.store.lost.retain(|lost| lost.member != member);
    }

    /// Ends leases that ran out, and waiters whose tasks are not polled.
    pub(super) fn expire(&mut self, step: &mut Step<'_, W, L>) {
        let now = step.now;
        let over = |lease: &&Lease<L>| lease.end.is_none() && now >= lease.limit();
        while let Some(lease) = self.leases.iter().find(over) {
            let (id, reason) = (lease.id, lease.reason());
            self.end(step, id, End::Lost(reason));
        }
        while self.give_up_late(step, 0) {}
        self.store.forget_lost(now);
    }
}
