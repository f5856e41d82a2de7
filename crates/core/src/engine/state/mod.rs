//! The protocol of a lock as a state machine without I/O: events go in, actions come out.
//!
//! Nothing here awaits, reads a clock or uses randomness of its own: the moment and a [`Randomness`] come with each event. So the
//! search in the tests runs this code, and not a model of it.

// In reading order: events and actions,
mod event;
mod key_set;
mod step;
// keys, their waiters, the requests to the store, leases and how they end,
mod claim;
mod grant;
mod held;
mod in_store;
mod key;
mod keys;
mod lease;
mod local_handoff;
mod lost;
mod notifications;
mod pending;
mod queue;
mod release;
mod renewals;
mod sleepers;
mod subscription;
mod take_over;
mod waiter;
// and the pauses in between.
mod backoff;
// What must always hold, single behaviours, and a search through everything that can happen, which is the package in `tests/search`.
#[cfg(test)]
mod check;
#[cfg(all(test, leasehold_search))]
mod search;
#[cfg(all(test, not(leasehold_search)))]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

pub(crate) use self::backoff::BackOff;
pub(crate) use self::event::{
    Action, Actions, Attach, Batch, Collected, End, Event, Granted, GuardRef, GuardRelease, Join, KeyId, LeaseCell,
    LeaseId, Member, Outcome, Randomness, Request, RequestId, Traits, WaiterId,
};

use self::key::Key;
use self::keys::{KeyEntry, Keys};
use self::lease::Lease;
pub(super) use self::step::longest;
use self::step::{Batches, Engine, Step};
use crate::clock::Moment;
use crate::{Error, ErrorKind, LockKey};

/// The state of all keys, for the engines that share wait queues.
///
/// `W` is the handle of a caller, and `L` the cell of a lease. Both only come out again in [`Action`]s.
#[derive(Clone, Debug)]
pub(crate) struct State<W, L> {
    keys: Keys<W, L>,
    members: BTreeMap<Member, Engine>,
    /// The keys that have to be looked at, by the moment.
    schedule: BTreeSet<(Moment, KeyId)>,
    next_id: u64,
}

/// What an event is applied with: the time, the randomness, and the list for the actions.
pub(crate) struct Applying<'a, W, L> {
    pub(crate) now: Moment,
    pub(crate) random: &'a mut dyn Randomness,
    pub(crate) out: &'a mut Actions<W, L>,
}

impl<W: Clone, L: LeaseCell> State<W, L> {
    pub(crate) fn new() -> Self {
        Self { keys: Keys::new(), members: BTreeMap::new(), schedule: BTreeSet::new(), next_id: 0 }
    }

    pub(crate) fn add(&mut self, traits: Traits) -> Member {
        self.next_id += 1;
        let member = Member(self.next_id);
        self.members.insert(member, Engine::new(traits));
        member
    }

    /// Removes an engine without handles, guards and requests.
    pub(crate) fn remove(&mut self, member: Member) {
        for key in self.keys_of(member) {
            let schedule = &mut self.schedule;
            self.keys.at(key, |key| {
                key.forget(member);
                if key.is_idle() {
                    schedule.remove(&key.place());
                }
            });
        }
        self.members.remove(&member);
    }

    fn keys_of(&self, member: Member) -> Vec<KeyId> {
        let places = self.members.get(&member).into_iter().flat_map(|engine| engine.places.iter());
        places.filter(|place| self.keys.concerns(*place, member)).collect()
    }

    /// The position of a key for a call of this engine. `None`: the engine is closed.
    fn place_for(&mut self, member: Member, key: &LockKey) -> Option<KeyId> {
        let engine = self.members.get_mut(&member).filter(|engine| !engine.closed)?;
        let place = self.keys.place(key);
        engine.places.add(place);
        Some(place)
    }

    /// Adds a caller to the wait queue of its key. The outcome comes with [`Action::Wake`]; a grant has to be collected.
    /// Also returns whether the caller is behind others of this process.
    pub(crate) fn join(&mut self, at: Applying<'_, W, L>, join: Join<W>) -> (WaiterId, bool) {
        let Some(key) = self.place_for(join.member, &join.key) else {
            at.out.push(Action::Wake(join.handle, Outcome::Failed(Error::new(ErrorKind::Closed, "acquire"))));
            return (WaiterId(0), false);
        };
        self.on_place(at, key, |key, step| key.join(step, join)).unwrap_or_default()
    }

    /// A waiter collects the guard that it was told of.
    pub(crate) fn collect(&mut self, id: WaiterId, guard: &GuardRef) -> Collected {
        self.keys.at(guard.key, |key| key.collect(id, guard)).unwrap_or(Collected::TooLate)
    }

    /// A guard is released or dropped. `by` gets the answer of the store.
    pub(crate) fn release_guard(&mut self, at: Applying<'_, W, L>, guard: &GuardRef, by: Option<W>) -> GuardRelease {
        self.on_place(at, guard.key, |key, step| key.release_guard(step, guard, by)).unwrap_or(GuardRelease::Gone)
    }

    /// Renews a lease now; `by` gets the answer of the store. False if the lease is not held any more.
    pub(crate) fn renew_now(&mut self, at: Applying<'_, W, L>, guard: &GuardRef, by: W) -> bool {
        self.on_place(at, guard.key, |key, step| key.renew_now(step, guard.lease, Some(by))).unwrap_or(false)
    }

    /// Detaches a guard: its lease stays in the store, for another process to attach. False if it is not held any more.
    pub(crate) fn detach(&mut self, at: Applying<'_, W, L>, guard: &GuardRef) -> bool {
        self.on_place(at, guard.key, |key, step| key.detach(step, guard)).unwrap_or(false)
    }

    /// Attaches a detached lease. The outcome comes with [`Action::Wake`]; a grant has to be collected.
    pub(crate) fn attach(&mut self, at: Applying<'_, W, L>, attach: Attach<W>) -> WaiterId {
        let Some(key) = self.place_for(attach.join.member, &attach.grant.key) else {
            at.out.push(Action::Wake(attach.join.handle, Outcome::Failed(Error::new(ErrorKind::Closed, "attach"))));
            return WaiterId(0);
        };
        self.on_place(at, key, |key, step| key.attach(step, attach)).unwrap_or_default()
    }

    /// Downgrades a writer. `None` if its lease is not held any more; else the writer's guard is over, and the outcome comes
    /// with [`Action::Wake`].
    pub(crate) fn downgrade(&mut self, at: Applying<'_, W, L>, guard: &GuardRef, join: Join<W>) -> Option<WaiterId> {
        self.on_place(at, guard.key, |key, step| key.downgrade(step, guard, join)).flatten()
    }

    /// Applies an event. The actions go to `at.out`.
    pub(crate) fn apply(&mut self, at: Applying<'_, W, L>, event: Event) {
        match event {
            Event::TimesUp(key, waiter) => self.on_waiter(at, &key, waiter, Key::times_up),
            Event::Polled(key, waiter) => self.on_waiter(at, &key, waiter, Key::polled),
            Event::Leave(key, waiter) => self.on_waiter(at, &key, waiter, Key::leave),
            Event::Answered { request, answer } => {
                self.on_place(at, request.0, |key, step| key.answered(step, request, answer));
            }
            Event::Released { request, answer } => {
                self.on_place(at, request.0, |key, step| key.released(step, request, answer));
            }
            Event::TakenOver { request, answer } => {
                self.on_place(at, request.0, |key, step| key.taken_over(step, request, answer));
            }
            Event::Renewed(batch, answers) => {
                let Applying { now, random, out } = at;
                for ((key, lease), answer) in batch.keys.into_iter().zip(batch.leases).zip(answers) {
                    let at = Applying { now, random: &mut *random, out: &mut *out };
                    self.on_place(at, key, |key, step| {
                        key.renewed(step, batch.id, batch.sent_at, lease, answer);
                    });
                }
            }
            Event::Subscribed { request, begun } => {
                self.on_place(at, request.0, |key, step| key.subscription_began(step, request, begun));
            }
            Event::Notified { request, notification } => {
                self.on_place(at, request.0, |key, step| key.notified(step, request, notification));
            }
            Event::ForceReleased { key, leases } => {
                self.on(at, &key, |key, step| key.force_released(step, &leases));
            }
            Event::Tick => self.tick(at),
            Event::Close(member) => self.close(at, member),
            Event::Abandon(member) => self.on_all(at, member, |key, step| key.abandon(step, member)),
        }
    }

    /// The moment at which [`Event::Tick`] is due.
    pub(crate) fn next(&self) -> Moment {
        self.schedule.first().map_or(Moment::NEVER, |(moment, _)| *moment)
    }

    /// The leases on a key that this process holds; with `only`, the one of this epoch.
    pub(crate) fn leases(&self, key: &LockKey, only: Option<u64>) -> Vec<LeaseId> {
        let Some(entry) = self.keys.get(key) else { return Vec::new() };
        let meant = |lease: &&Lease<L>| lease.end.is_none() && (only.is_none() || lease.epoch() == only);
        entry.leases().iter().filter(meant).map(|lease| lease.id).collect()
    }

    /// Whether a subscription is still wanted.
    pub(crate) fn is_subscribed(&self, request: RequestId) -> bool {
        let key = self.keys.entry(request.0).and_then(KeyEntry::whole);
        key.is_some_and(|key| key.store.subscription.is_request(request))
    }

    /// Until when a caller with this limit waits for an answer that is under way.
    pub(crate) fn latest(&self, member: Member, limit: Moment) -> Moment {
        self.members.get(&member).map_or(limit, |engine| engine.latest(limit))
    }

    /// Whether a release of the key is under way, or is repeated.
    pub(crate) fn gives_back(&self, key: &LockKey) -> bool {
        let key = self.keys.get(key).and_then(KeyEntry::whole);
        key.is_some_and(|key| key.store.releases.iter().any(|release| release.late_pause.is_none()))
    }

    /// Whether somebody of this process waits for the key.
    pub(crate) fn is_wanted(&self, key: &LockKey) -> bool {
        self.keys.get(key).and_then(KeyEntry::whole).is_some_and(|key| !key.queue.waiters.is_empty())
    }

    /// Whether no request of this engine is under way.
    pub(crate) fn is_idle(&self, member: Member) -> bool {
        self.members.get(&member).is_none_or(|engine| engine.under_way == 0)
    }

    fn tick(&mut self, at: Applying<'_, W, L>) {
        let Applying { now, random, out } = at;
        let mut due = Vec::new();
        while let Some((_, key)) = self.schedule.first().filter(|(moment, _)| *moment <= now) {
            due.push(*key);
            self.schedule.pop_first();
        }
        let mut batches = Batches::new();
        for key in due {
            let at = Applying { now, random: &mut *random, out: &mut *out };
            self.on_with(at, key, &mut batches, |key, step| {
                key.noted = Moment::NEVER;
                key.tick(step);
            });
        }
        for (member, batch) in batches {
            out.push(Action::Send { member, request: Request::Renew(batch), by: None, alone: false });
        }
    }

    fn close(&mut self, at: Applying<'_, W, L>, member: Member) {
        if let Some(engine) = self.members.get_mut(&member) {
            engine.closed = true;
        }
        self.on_all(at, member, |key, step| key.close(step, member));
    }

    fn on_all(
        &mut self,
        at: Applying<'_, W, L>,
        member: Member,
        mut event: impl FnMut(&mut Key<W, L>, &mut Step<'_, W, L>),
    ) {
        let Applying { now, random, out } = at;
        for key in self.keys_of(member) {
            let at = Applying { now, random: &mut *random, out: &mut *out };
            self.on_place(at, key, &mut event);
        }
    }

    fn on_waiter(
        &mut self,
        at: Applying<'_, W, L>,
        key: &LockKey,
        id: WaiterId,
        change: fn(&mut Key<W, L>, &mut Step<'_, W, L>, WaiterId),
    ) {
        self.on(at, key, |key, step| change(key, step, id));
    }

    /// Changes a key. `None`: nothing is known of it.
    fn on<T>(
        &mut self,
        at: Applying<'_, W, L>,
        name: &LockKey,
        event: impl FnOnce(&mut Key<W, L>, &mut Step<'_, W, L>) -> T,
    ) -> Option<T> {
        let key = self.keys.known_place(name)?;
        self.on_place(at, key, event)
    }

    fn on_place<T>(
        &mut self,
        at: Applying<'_, W, L>,
        key: KeyId,
        event: impl FnOnce(&mut Key<W, L>, &mut Step<'_, W, L>) -> T,
    ) -> Option<T> {
        self.on_with(at, key, &mut Batches::new(), event)
    }

    fn on_with<T>(
        &mut self,
        at: Applying<'_, W, L>,
        key: KeyId,
        batches: &mut Batches,
        event: impl FnOnce(&mut Key<W, L>, &mut Step<'_, W, L>) -> T,
    ) -> Option<T> {
        let Applying { now, random, out } = at;
        let (members, next_id, schedule) = (&mut self.members, &mut self.next_id, &mut self.schedule);
        let mut step = Step { now, random, members, next_id, out, batches };
        self.keys.at(key, |key| {
            key.expire(&mut step);
            let result = event(key, &mut step);
            let next = if key.is_idle() { Moment::NEVER } else { key.next_event(&step) };
            if key.noted != next {
                schedule.remove(&key.place());
                key.noted = next;
                if next != Moment::NEVER {
                    schedule.insert(key.place());
                }
            }
            result
        })
    }
}
