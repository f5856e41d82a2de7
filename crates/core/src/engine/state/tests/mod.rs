//! Single behaviours: what the state machine says, to whom and how soon, where the search only sees that nothing breaks.
//!
//! Each notices a mutant that neither the search nor another of them notices. A test that notices none that is new is not needed.

#![allow(
    clippy::unwrap_used,
    clippy::unnecessary_wraps,
    reason = "a test fails by panicking, and the answers of a store are results"
)]

mod claims;
mod engines;
mod imports;
mod leases;
mod line;
mod page;
mod sessions;
mod signals;

use std::collections::BTreeMap;
use std::time::Duration;

use super::check::{LeaseNote, TestRandom, number_of, owner};
use super::{
    Action, Actions, Applying, Attach, Batch, Collected, Event, Granted, GuardRelease, Join, Member, Outcome, Request,
    RequestId, State, Traits, WaiterId,
};
use crate::clock::Moment;
use crate::{
    Attempt, Claim, Error, ErrorKind, GrantRef, LeaseStatus, LockKey, LockOptions, Mode, Notification, Result,
    SessionId,
};

/// As most stores are: with leases and hand-offs, and nothing else.
const PLAIN: Traits = Traits {
    session: None,
    reentrant: false,
    leased: true,
    queues: false,
    marks: false,
    notifies: false,
    answers_within: Duration::from_secs(1),
    batch: 250,
    handoffs: 64,
    handoff_age: Duration::from_millis(10),
};
const QUEUES: Traits = Traits { queues: true, ..PLAIN };
const NOTIFIES: Traits = Traits { notifies: true, ..PLAIN };
/// Nothing is passed on inside the process, and readers share nothing.
const APART: Traits = Traits { handoffs: 0, ..PLAIN };

/// As the engine of a session.
const fn session(of: u64) -> Traits {
    Traits { session: Some(SessionId(of)), reentrant: true, ..PLAIN }
}

/// The lease, in milliseconds, and how long it lasts on the clock of its holder.
const TTL: u64 = 12_000;
const HELD_FOR: u64 = 11_878;

const BUSY: Result<Attempt> = Ok(Attempt::Busy { retry_in: None });
const HELD: Result<LeaseStatus> = Ok(LeaseStatus::Held);
const NOT_HELD: Result<LeaseStatus> = Ok(LeaseStatus::NotHeld);
const FORCED: Result<LeaseStatus> = Ok(LeaseStatus::ForceReleased);

fn granted(epoch: u64) -> Result<Attempt> {
    Ok(Attempt::Granted { epoch: Some(epoch) })
}

/// A place in the store's queue.
fn queued(retry_in: u64, lease: u64, notifies: bool) -> Result<Attempt> {
    let (retry_in, lease) = (millis(retry_in), millis(lease));
    Ok(Attempt::Queued { epoch_of_holder: Some(3), latest_epoch: Some(7), retry_in, notifies, lease })
}

fn held_by(session: u64) -> Result<Attempt> {
    Ok(Attempt::HeldBy { session: SessionId(session), retry_in: None })
}

fn unanswered<T>() -> Result<T> {
    Err(Error::new(ErrorKind::Indeterminate, "ask"))
}

fn refused<T>() -> Result<T> {
    Err(Error::new(ErrorKind::Unavailable, "ask"))
}

fn millis(count: u64) -> Duration {
    Duration::from_millis(count)
}

/// A caller, who wants to hold the key alone for as long as it likes, and waits for ever, unless it says otherwise.
#[derive(Clone)]
struct Caller {
    name: &'static str,
    engine: usize,
    key: &'static str,
    mode: Mode,
    options: LockOptions,
    wait: Option<Duration>,
}

fn writer(name: &'static str) -> Caller {
    let options = LockOptions::new().ttl(millis(TTL));
    Caller { name, engine: 0, key: "k", mode: Mode::Exclusive, options, wait: None }
}

fn reader(name: &'static str) -> Caller {
    Caller { mode: Mode::Shared, ..writer(name) }
}

impl Caller {
    fn of(self, engine: usize) -> Self {
        Self { engine, ..self }
    }

    fn with(self, change: impl FnOnce(LockOptions) -> LockOptions) -> Self {
        Self { options: change(self.options), ..self }
    }

    fn within(self, wait: u64) -> Self {
        Self { wait: Some(millis(wait)), ..self }
    }
}

/// Some engines that share a state, and the store by hand. What the state machine does is written down in words; owners are numbers.
#[derive(Clone)]
struct Play {
    state: State<&'static str, LeaseNote>,
    now: Moment,
    owners: u64,
    engines: Vec<Member>,
    callers: BTreeMap<&'static str, WaiterId>,
    guards: BTreeMap<&'static str, Granted<LeaseNote>>,
    /// What has no answer yet: what was asked, for which owner.
    asked: Vec<(&'static str, u64, RequestId)>,
    renewals: Vec<Batch>,
    /// The last subscription that was asked for.
    subscription: Option<RequestId>,
    did: Vec<String>,
}

impl Play {
    /// With an engine that is like this.
    fn of(traits: Traits) -> Self {
        let mut play = Self {
            state: State::new(),
            now: Moment::default().plus(Duration::from_secs(1000)),
            owners: 0,
            engines: Vec::new(),
            callers: BTreeMap::new(),
            guards: BTreeMap::new(),
            asked: Vec::new(),
            renewals: Vec::new(),
            subscription: None,
            did: Vec::new(),
        };
        play.engine(traits);
        play
    }

    /// Another engine, which has the next number.
    fn engine(&mut self, traits: Traits) -> &mut Self {
        self.engines.push(self.state.add(traits));
        self
    }

    /// All that was done since this was asked last.
    #[track_caller]
    fn does(&mut self, expected: &str) -> &mut Self {
        assert_eq!(self.did.drain(..).collect::<Vec<_>>().join(", "), expected);
        self
    }

    /// Nothing is ever due again.
    #[track_caller]
    fn is_done(&self) {
        assert_eq!(self.state.next(), Moment::NEVER);
    }

    fn ask<T>(
        &mut self,
        ask: impl FnOnce(&mut State<&'static str, LeaseNote>, Applying<'_, &'static str, LeaseNote>) -> T,
    ) -> T {
        let mut out = Actions::new();
        let at = Applying { now: self.now, random: &mut TestRandom(&mut self.owners), out: &mut out };
        let answer = ask(&mut self.state, at);
        self.state.check(self.now).unwrap();
        for action in out {
            let words = self.words(action);
            self.did.push(words);
        }
        answer
    }

    fn apply(&mut self, event: Event) -> &mut Self {
        self.ask(|state, at| state.apply(at, event));
        self
    }

    fn words(&mut self, action: Action<&'static str, LeaseNote>) -> String {
        let engine = |member| self.engines.iter().position(|known| *known == member).unwrap();
        match action {
            Action::Send { request, by, alone, .. } => {
                let asked = self.request(request);
                if alone { format!("{asked} by {}", by.unwrap()) } else { asked }
            }
            Action::Detached(who) => format!("{who} is detached"),
            Action::Wake(who, Outcome::Granted(granted)) => {
                let words = format!("{who} has guard {}", granted.number);
                self.guards.insert(who, granted);
                words
            }
            Action::Wake(who, Outcome::Busy(busy)) => match busy.remaining {
                Some(left) => format!("{who}: busy for {}", left.as_millis()),
                None => format!("{who}: busy"),
            },
            Action::Wake(who, Outcome::Failed(error)) => format!("{who}: {:?}", error.kind()),
            Action::Wake(who, Outcome::Called) => format!("{who} is called"),
            Action::Limit(_, limit) => format!("limit {}", limit.since(self.now).as_millis()),
            Action::End { end, .. } => format!("ends: {end:?}"),
            Action::HandedOff => "handed off".to_owned(),
            Action::AttemptFailed(..) => "claim failed".to_owned(),
            Action::ReleaseFailed(..) => "release failed".to_owned(),
            Action::Unsubscribe(_) => "unsubscribe".to_owned(),
            Action::Keep(member) => format!("keep {}", engine(member)),
            Action::Idle(member) => format!("idle {}", engine(member)),
        }
    }

    fn request(&mut self, request: Request) -> String {
        let (what, owner, id) = match request {
            Request::Claim(id, claim) => {
                let last = if claim.waits { "" } else { "last " };
                let without = claim.lost.map_or_else(String::new, |epoch| format!(" that lost {epoch}"));
                let owner = number_of(claim.owner);
                self.asked.push(("claim", owner, id));
                return format!("{last}claim {owner}{without}");
            }
            Request::Renew(batch) => {
                let words = format!("renew {} within {}", batch.leases.len(), batch.within.as_millis());
                self.renewals.push(batch);
                return words;
            }
            Request::Subscribe(id, _) => {
                self.subscription = Some(id);
                return "subscribe".to_owned();
            }
            Request::Release(id, grant) => ("release", number_of(grant.owner), id),
            Request::TakeOver(id, _, new, _) => ("take over", number_of(new), id),
            Request::Downgrade(id, writer, claim) => {
                let Claim { label, reason, ttl, waits, .. } = &claim;
                assert_eq!((label.as_deref(), reason.as_deref()), (Some("me"), Some("because")));
                assert_eq!((claim.mode, *ttl, *waits), (Mode::Shared, millis(TTL), false));
                assert_eq!(writer.mode, Mode::Exclusive);
                ("downgrade", number_of(claim.owner), id)
            }
        };
        self.asked.push((what, owner, id));
        format!("{what} {owner}")
    }

    /// Lets time pass, and looks at what is due by then.
    fn passes(&mut self, time: u64) -> &mut Self {
        let end = self.now.plus(millis(time));
        while self.state.next() <= end {
            self.now = self.now.max(self.state.next());
            self.apply(Event::Tick);
        }
        self.now = end;
        self
    }

    /// Lets time pass until something is done, which is after so long.
    #[track_caller]
    fn due(&mut self, after: u64) -> &mut Self {
        let (began, before) = (self.now, self.did.len());
        while self.did.len() == before {
            assert!(self.state.next() < Moment::NEVER, "nothing is due");
            self.now = self.now.max(self.state.next());
            self.apply(Event::Tick);
        }
        assert_eq!(self.now.since(began), millis(after));
        self
    }

    /// Lets time pass in which the process stands still.
    fn jumps(&mut self, time: u64) -> &mut Self {
        self.now = self.now.plus(millis(time));
        self
    }

    fn joining(&self, caller: Caller) -> Join<&'static str> {
        let Caller { name: handle, engine, key, mode, options, wait } = caller;
        let limit = wait.map_or(Moment::NEVER, |wait| self.now.plus(wait));
        Join { member: self.engines[engine], key: LockKey::new(key).unwrap(), mode, options, limit, handle }
    }

    /// Whether it stands behind others.
    fn join(&mut self, caller: Caller) -> bool {
        let join = self.joining(caller);
        let name = join.handle;
        let (id, behind) = self.ask(|state, at| state.join(at, join));
        self.callers.insert(name, id);
        behind
    }

    fn joins(&mut self, caller: Caller) -> &mut Self {
        self.join(caller);
        self
    }

    fn waits(&mut self, name: &'static str) -> &mut Self {
        self.joins(writer(name))
    }

    fn reads(&mut self, name: &'static str) -> &mut Self {
        self.joins(reader(name))
    }

    fn tries(&mut self, name: &'static str) -> &mut Self {
        self.joins(writer(name).within(0))
    }

    /// One that is granted the key with this epoch, and comes for it. What was done until then is not looked at.
    fn holds(&mut self, caller: Caller, epoch: u64) -> &mut Self {
        let name = caller.name;
        self.joins(caller);
        self.claimed(self.owners, granted(epoch)).comes(name).did.clear();
        self
    }

    /// One that asks for a lock which another process detached.
    fn attaches(&mut self, name: &'static str) -> &mut Self {
        let join = self.joining(writer(name).within(0));
        let grant = GrantRef { key: join.key.clone(), owner: owner(0xf), mode: Mode::Exclusive, epoch: Some(7) };
        let id = self.ask(|state, at| state.attach(at, Attach { join, grant, number: 3 }));
        self.callers.insert(name, id);
        self
    }

    /// The writer goes on as a reader.
    fn downgrades(&mut self, name: &'static str) -> &mut Self {
        let join = self.joining(reader(name).within(0).with(|options| options.label("me").reason("because")));
        let guard = self.guards[name].guard;
        let id = self.ask(|state, at| state.downgrade(at, &guard, join)).unwrap();
        self.callers.insert(name, id);
        self
    }

    fn collects(&mut self, name: &'static str) -> Collected {
        let (id, guard) = (self.callers[name], self.guards[name].guard);
        self.ask(|state, _| state.collect(id, &guard))
    }

    /// The caller comes for the guard that it was told of.
    #[track_caller]
    fn comes(&mut self, name: &'static str) -> &mut Self {
        assert_eq!(self.collects(name), Collected::Yes);
        self
    }

    fn leaves(&mut self, name: &'static str) -> &mut Self {
        self.apply(Event::Leave(key(), self.callers[name]))
    }

    /// The task of this caller is polled.
    fn polled(&mut self, name: &'static str) -> &mut Self {
        self.apply(Event::Polled(key(), self.callers[name]))
    }

    /// The wait of this caller is over.
    fn times_up(&mut self, name: &'static str) -> &mut Self {
        self.apply(Event::TimesUp(key(), self.callers[name]))
    }

    fn release(&mut self, name: &'static str, by: Option<&'static str>) -> GuardRelease {
        let guard = self.guards[name].guard;
        self.ask(|state, at| state.release_guard(at, &guard, by))
    }

    fn drops(&mut self, name: &'static str) -> &mut Self {
        self.release(name, None);
        self
    }

    fn closes(&mut self, engine: usize) -> &mut Self {
        self.apply(Event::Close(self.engines[engine]))
    }

    fn abandons(&mut self, engine: usize) -> &mut Self {
        self.apply(Event::Abandon(self.engines[engine]))
    }

    fn removes(&mut self, engine: usize) -> &mut Self {
        self.state.remove(self.engines[engine]);
        self
    }

    fn is_idle(&self, engine: usize) -> bool {
        self.state.is_idle(self.engines[engine])
    }

    /// All leases of the key are released by force.
    fn forces(&mut self) -> &mut Self {
        let leases = self.state.leases(&key(), None);
        self.apply(Event::ForceReleased { key: key(), leases })
    }

    /// The oldest request of this kind for this owner is answered.
    #[track_caller]
    fn answered(&mut self, what: &str, owner: u64) -> RequestId {
        let index = self.asked.iter().position(|(asked, of, _)| (*asked, *of) == (what, owner));
        self.asked.remove(index.unwrap_or_else(|| panic!("no {what} {owner} beside {:?}", self.did))).2
    }

    #[track_caller]
    fn claimed(&mut self, owner: u64, answer: Result<Attempt>) -> &mut Self {
        let request = self.answered("claim", owner);
        self.apply(Event::Answered { request, answer })
    }

    /// The answer to the last claim comes before those to claims before it.
    #[track_caller]
    fn claimed_last(&mut self, owner: u64, answer: Result<Attempt>) -> &mut Self {
        let last = self.asked.pop().unwrap();
        self.asked.insert(0, last);
        self.claimed(owner, answer)
    }

    #[track_caller]
    fn released(&mut self, owner: u64, answer: Result<LeaseStatus>) -> &mut Self {
        let request = self.answered("release", owner);
        self.apply(Event::Released { request, answer })
    }

    #[track_caller]
    fn taken_over(&mut self, what: &str, owner: u64, answer: Result<Attempt>) -> &mut Self {
        let request = self.answered(what, owner);
        self.apply(Event::TakenOver { request, answer })
    }

    /// The oldest renewal is answered.
    #[track_caller]
    fn renewed(&mut self, answer: Result<LeaseStatus>) -> &mut Self {
        let batch = self.renewals.remove(0);
        self.apply(Event::Renewed(batch, vec![answer]))
    }

    /// The subscription begins.
    fn subscribed(&mut self) -> &mut Self {
        self.apply(Event::Subscribed { request: self.subscription.unwrap(), begun: true })
    }

    fn notified(&mut self, notification: Notification) -> &mut Self {
        self.apply(Event::Notified { request: self.subscription.unwrap(), notification })
    }

    /// The store tells of a grant.
    fn told(&mut self, of: u64, epoch: u64) -> &mut Self {
        self.notified(Notification::Granted { owner: owner(of), epoch: Some(epoch) })
    }
}

fn key() -> LockKey {
    LockKey::new("k").unwrap()
}
