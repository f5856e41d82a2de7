//! The protocol of a lock as a state machine without I/O: events go in, actions come out.
//!
//! Nothing here awaits, reads a clock or rolls dice: the moment comes with each event, and [`Chance`] with whoever applies
//! it. So the search in the tests runs this code, and not a model of it.

// In reading order: what happens and what is done about it,
mod event;
mod rules;
mod step;
// one key and who waits for it, what is asked of the store, what is held, how it ends,
mod attach;
mod claim;
mod grant;
mod key;
mod lease;
mod local_handoff;
mod notifications;
mod release;
mod renewals;
// and how long to wait in between.
mod backoff;
// What must hold of it, and everything that can happen.
#[cfg(test)]
mod check;
#[cfg(test)]
mod search;

use std::collections::{BTreeSet, HashMap};

pub(crate) use self::event::{
    Action, Attach, Chance, Collected, End, Event, Granted, GuardRef, Join, LeaseCell, LeaseId, LetGo, Member, Outcome,
    Request, RequestId, Traits, WaiterId,
};

use self::key::Key;
use self::renewals::Due;
use self::step::{Engine, Step};
use crate::clock::Moment;
use crate::{Error, ErrorKind, LockKey, Renewal};

/// What the engines that share a line of waiters know of all their keys.
///
/// `W` is how a caller is reached, and `L` how the guards of a lease are: both only come out again in [`Action`]s.
#[derive(Clone, Debug)]
pub(crate) struct State<W, L> {
    keys: HashMap<LockKey, Key<W, L>>,
    members: HashMap<Member, Engine>,
    /// Each key at the moment at which it needs attention.
    schedule: BTreeSet<(Moment, LockKey)>,
    next_id: u64,
}

/// What it takes to apply an event: the time, what is random, and where the actions go.
pub(crate) struct Applying<'a, W, L> {
    pub(crate) now: Moment,
    pub(crate) chance: &'a mut dyn Chance,
    pub(crate) out: &'a mut Vec<Action<W, L>>,
}

impl<W: Clone, L: LeaseCell> State<W, L> {
    pub(crate) fn new() -> Self {
        Self { keys: HashMap::new(), members: HashMap::new(), schedule: BTreeSet::new(), next_id: 0 }
    }

    /// Another engine takes part.
    pub(crate) fn add(&mut self, traits: Traits) -> Member {
        self.next_id += 1;
        let member = Member(self.next_id);
        self.members.insert(member, Engine::new(traits));
        member
    }

    /// An engine of which nobody has a handle, guard or request any more.
    pub(crate) fn remove(&mut self, member: Member) {
        for name in self.keys_of(member) {
            if let Some(key) = self.keys.get_mut(&name) {
                key.forget(member);
                if key.is_idle() {
                    self.schedule.remove(&(key.noted, name.clone()));
                    self.keys.remove(&name);
                }
            }
        }
        self.members.remove(&member);
    }

    fn keys_of(&self, member: Member) -> Vec<LockKey> {
        let concerned = self.keys.iter().filter(|(_, key)| key.concerns(member));
        concerned.map(|(name, _)| name.clone()).collect()
    }

    /// A caller asks for a key. It has to come for what it is told in [`Action::Wake`].
    pub(crate) fn join(&mut self, at: Applying<'_, W, L>, join: Join<W>) -> WaiterId {
        if self.members.get(&join.member).is_none_or(|engine| engine.closed) {
            at.out.push(Action::Wake(join.handle, Outcome::Failed(Error::new(ErrorKind::Closed, "acquire"))));
            return WaiterId(0);
        }
        let key = join.key.clone();
        self.on(at, &key, |key, step| key.join(step, join))
    }

    /// A waiter comes for the guard that it was told of.
    pub(crate) fn collect(&mut self, id: WaiterId, guard: &GuardRef) -> Collected {
        match self.keys.get_mut(&guard.key) {
            Some(key) => key.collect(id, guard),
            None => Collected::TooLate,
        }
    }

    /// A guard ends on its own account: released, or dropped. `by` is told what the store says.
    pub(crate) fn let_go(&mut self, at: Applying<'_, W, L>, guard: &GuardRef, by: Option<W>) -> LetGo {
        self.on(at, &guard.key, |key, step| key.let_go(step, guard, by))
    }

    /// A guard asks for a renewal now; `by` is told what the store says. False if it is held no more.
    pub(crate) fn renew_now(&mut self, at: Applying<'_, W, L>, guard: &GuardRef, by: W) -> bool {
        self.on(at, &guard.key, |key, step| key.renew_now(step, guard.lease, Some(by)))
    }

    /// A guard leaves its lease to the store, for somebody else to take over. False if it is held no more.
    pub(crate) fn detach(&mut self, at: Applying<'_, W, L>, guard: &GuardRef) -> bool {
        self.on(at, &guard.key, |key, step| key.detach(step, guard))
    }

    /// A caller asks for a detached lease. It has to come for what it is told in [`Action::Wake`].
    pub(crate) fn attach(&mut self, at: Applying<'_, W, L>, attach: Attach<W>) -> WaiterId {
        if self.members.get(&attach.join.member).is_none_or(|engine| engine.closed) {
            at.out.push(Action::Wake(attach.join.handle, Outcome::Failed(Error::new(ErrorKind::Closed, "adopt"))));
            return WaiterId(0);
        }
        let key = attach.grant.key.clone();
        self.on(at, &key, |key, step| key.attach(step, attach))
    }

    /// What happened, and what is to be done about it.
    pub(crate) fn apply(&mut self, at: Applying<'_, W, L>, event: Event) {
        match event {
            Event::TimesUp(key, waiter) => self.on(at, &key, |key, step| key.times_up(step, waiter)),
            Event::Leave(key, waiter) => self.on(at, &key, |key, step| key.leave(step, waiter)),
            Event::Answered { key, request, answer } => {
                self.on(at, &key, |key, step| key.answered(step, request, answer));
            }
            Event::Released { key, request, answer } => {
                self.on(at, &key, |key, step| key.released(step, request, answer));
            }
            Event::TakenOver { key, request, answer } => {
                self.on(at, &key, |key, step| key.taken_over(step, request, answer));
            }
            Event::Renewed { request, sent_at, answers } => {
                let Applying { now, chance, out } = at;
                for (key, lease, answer) in answers {
                    let at = Applying { now, chance: &mut *chance, out: &mut *out };
                    self.on(at, &key, |key, step| key.renewed(step, request, sent_at, lease, answer));
                }
            }
            Event::Listening { key, request, begun } => {
                self.on(at, &key, |key, step| key.listening(step, request, begun));
            }
            Event::Heard { key, request, hint } => self.on(at, &key, |key, step| key.heard(step, request, hint)),
            Event::ForceReleased { key, leases } => self.on(at, &key, |key, step| key.force_released(step, &leases)),
            Event::Tick => self.tick(at),
            Event::Close(member) => self.close(at, member),
            Event::Abandon(member) => self.abandon(at, member),
        }
    }

    /// When [`Event::Tick`] is due.
    pub(crate) fn next(&self) -> Moment {
        self.schedule.first().map_or(Moment::NEVER, |(moment, _)| *moment)
    }

    /// The leases on a key that are held here.
    pub(crate) fn leases(&self, key: &LockKey) -> Vec<LeaseId> {
        let leases = self.keys.get(key).map_or(&[][..], |key| &key.leases);
        leases.iter().filter(|lease| lease.end.is_none()).map(|lease| lease.id).collect()
    }

    /// Whether a waiter stands behind others of this process.
    pub(crate) fn is_behind(&self, key: &LockKey, id: WaiterId) -> bool {
        self.keys.get(key).and_then(|key| key.index(id)).is_some_and(|index| index > 0)
    }

    /// Whether a subscription is still wanted.
    pub(crate) fn is_subscribed(&self, key: &LockKey, request: RequestId) -> bool {
        self.keys.get(key).is_some_and(|key| key.subscription.is_request(request))
    }

    /// Until when an answer under way is waited for, by a caller whose wait has a limit.
    pub(crate) fn latest(&self, member: Member, limit: Moment) -> Moment {
        self.members.get(&member).map_or(limit, |engine| engine.latest(limit))
    }

    /// Whether nothing of this engine is under way.
    pub(crate) fn is_idle(&self, member: Member) -> bool {
        self.members.get(&member).is_none_or(|engine| engine.under_way == 0)
    }

    fn tick(&mut self, at: Applying<'_, W, L>) {
        let Applying { now, chance, out } = at;
        let mut names = Vec::new();
        while let Some(first) = self.schedule.first().filter(|(moment, _)| *moment <= now).cloned() {
            self.schedule.remove(&first);
            if let Some(key) = self.keys.get_mut(&first.1) {
                key.noted = Moment::NEVER;
            }
            names.push(first.1);
        }
        let mut due = Vec::new();
        for name in names {
            let at = Applying { now, chance: &mut *chance, out: &mut *out };
            due.extend(self.on_due(at, &name));
        }
        due.sort_by_key(|(member, ..)| *member);
        for of_one in due.chunk_by(|one, other| one.0 == other.0) {
            let member = of_one[0].0;
            let most = self.members[&member].traits.batch.max(1);
            for batch in of_one.chunks(most) {
                let at = Applying { now, chance: &mut *chance, out: &mut *out };
                self.renew(at, member, batch);
            }
        }
    }

    fn renew(&mut self, at: Applying<'_, W, L>, member: Member, batch: &[Due]) {
        let Applying { now, chance, out } = at;
        self.next_id += 1;
        let id = RequestId(self.next_id);
        let within = batch.iter().map(|(.., renewal)| renewals::within(renewal.ttl)).min().unwrap_or_default();
        for (_, name, lease, _) in batch {
            let at = Applying { now, chance: &mut *chance, out: &mut *out };
            self.on(at, name, |key, _| key.renewal_sent(*lease, id, renewals::given_up(now, within)));
        }
        let renewals: Vec<Renewal> = batch.iter().map(|(.., renewal)| renewal.clone()).collect();
        let leases = batch.iter().map(|(_, _, lease, _)| *lease).collect();
        let request = Request::Renew { id, sent_at: now, leases, renewals, within };
        out.push(Action::Send { member, request, by: None, alone: false });
    }

    fn close(&mut self, at: Applying<'_, W, L>, member: Member) {
        if let Some(engine) = self.members.get_mut(&member) {
            engine.closed = true;
        }
        self.on_all(at, member, |key, step| key.close(step, member));
    }

    fn abandon(&mut self, at: Applying<'_, W, L>, member: Member) {
        self.on_all(at, member, |key, step| key.abandon(step, member));
    }

    fn on_all(
        &mut self,
        at: Applying<'_, W, L>,
        member: Member,
        mut event: impl FnMut(&mut Key<W, L>, &mut Step<'_, W, L>),
    ) {
        let Applying { now, chance, out } = at;
        for key in self.keys_of(member) {
            let at = Applying { now, chance: &mut *chance, out: &mut *out };
            self.on(at, &key, &mut event);
        }
    }

    fn on<T>(
        &mut self,
        at: Applying<'_, W, L>,
        name: &LockKey,
        event: impl FnOnce(&mut Key<W, L>, &mut Step<'_, W, L>) -> T,
    ) -> T {
        let mut due = Vec::new();
        self.on_key(at, name, &mut due, event)
    }

    fn on_due(&mut self, at: Applying<'_, W, L>, name: &LockKey) -> Vec<Due> {
        let mut due = Vec::new();
        self.on_key(at, name, &mut due, Key::tick);
        due
    }

    fn on_key<T>(
        &mut self,
        at: Applying<'_, W, L>,
        name: &LockKey,
        due: &mut Vec<Due>,
        event: impl FnOnce(&mut Key<W, L>, &mut Step<'_, W, L>) -> T,
    ) -> T {
        let Applying { now, chance, out } = at;
        let key = self.keys.entry(name.clone()).or_insert_with(|| Key::new(name.clone()));
        let (members, next_id) = (&mut self.members, &mut self.next_id);
        let mut step = Step { now, chance, members, next_id, out, due };
        key.expire(&mut step);
        let result = event(key, &mut step);
        let next = key.next_event(&step);
        if key.is_idle() {
            self.schedule.remove(&(key.noted, name.clone()));
            self.keys.remove(name);
        } else {
            self.note(next, name);
        }
        result
    }

    /// Has the key looked after at this moment.
    fn note(&mut self, next: Moment, name: &LockKey) {
        let Some(key) = self.keys.get_mut(name).filter(|key| key.noted != next) else { return };
        self.schedule.remove(&(key.noted, name.clone()));
        key.noted = next;
        if next != Moment::NEVER {
            self.schedule.insert((next, name.clone()));
        }
    }
}
