//! Single behaviours: what the state machine says, to whom and how soon, where the search only sees that nothing breaks.
//!
//! Each notices a mutant that neither the search nor another of them notices. A test that notices none that is new is not needed.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod claims;
mod engines;
mod grants;
mod imports;
mod keys;
mod late_requests;
mod local_handoffs;
mod lost;
mod messages;
mod next_waiter;
mod one_acquire;
mod releases;
mod renewals;
mod sleepers;
mod take_overs;
mod wait_queue;

use std::time::Duration;

use super::{
    Action, Actions, Applying, Attach, Batch, Collected, End, Event, Granted, GuardRef, GuardRelease, Join, LeaseCell,
    Member, Outcome, Randomness, Request, RequestId, State, Traits, WaiterId,
};
use crate::clock::Moment;
use crate::{
    Attempt, Claim, Error, ErrorKind, GrantRef, LeaseStatus, LockKey, LockOptions, LossReason, Mode, Notification,
    OwnerId, Result, SessionId,
};

/// The cell of a lease knows where it began.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Cell {
    grant: GrantRef,
    limit: Moment,
}

impl LeaseCell for Cell {
    fn new(grant: GrantRef, limit: Moment) -> Self {
        Self { grant, limit }
    }

    fn key(&self) -> &LockKey {
        &self.grant.key
    }

    fn owner(&self) -> OwnerId {
        self.grant.owner
    }

    fn mode(&self) -> Mode {
        self.grant.mode
    }

    fn epoch(&self) -> Option<u64> {
        self.grant.epoch
    }
}

impl Granted<Cell> {
    fn grant(&self) -> GrantRef {
        GrantRef { owner: self.owner, ..self.cell.grant.clone() }
    }
}

/// Owner ids in their order, and the longest pauses.
struct TestRandom<'a>(&'a mut u64);

impl Randomness for TestRandom<'_> {
    fn owner(&mut self, _: Moment) -> OwnerId {
        *self.0 += 1;
        OwnerId::parse_hex(&format!("{:032x}", *self.0)).unwrap()
    }

    fn jittered(&mut self, pause: Duration) -> Duration {
        pause
    }
}

type Done = Action<&'static str, Cell>;

/// Some engines that share a state, and the store by hand.
struct Play {
    state: State<&'static str, Cell>,
    now: Moment,
    owners: u64,
    /// What is still to be looked at.
    out: Actions<&'static str, Cell>,
}

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

const BUSY: Attempt = Attempt::Busy { retry_in: None };

const TTL: Duration = Duration::from_secs(12);

/// A place in the store's queue.
fn queued(retry_in: Duration, lease: Duration, notifies: bool) -> Attempt {
    Attempt::Queued { epoch_of_holder: Some(3), latest_epoch: Some(7), retry_in, notifies, lease }
}

/// A lock that another process detached.
fn detached() -> GrantRef {
    let owner = OwnerId::parse_hex(&"f".repeat(32)).unwrap();
    GrantRef { key: key(), owner, mode: Mode::Exclusive, epoch: Some(7) }
}

/// As the engine of a session.
fn session(of: u64) -> Traits {
    Traits { session: Some(SessionId(of)), reentrant: true, ..PLAIN }
}

fn millis(count: u64) -> Duration {
    Duration::from_millis(count)
}

fn key() -> LockKey {
    LockKey::new("k").unwrap()
}

fn renewing() -> LockOptions {
    LockOptions::new().ttl(TTL)
}

fn lost() -> Error {
    Error::new(ErrorKind::Indeterminate, "ask")
}

fn refused() -> Error {
    Error::new(ErrorKind::Unavailable, "ask")
}

impl Play {
    fn new() -> Self {
        Self {
            state: State::new(),
            now: Moment::default().plus(Duration::from_secs(1000)),
            owners: 0,
            out: Actions::new(),
        }
    }

    /// With an engine that is like this.
    fn with(traits: Traits) -> (Self, Member) {
        let mut play = Self::new();
        let member = play.state.add(traits);
        (play, member)
    }

    /// The same once more, to see what else could happen.
    fn fork(&self) -> Self {
        Self { state: self.state.clone(), now: self.now, owners: self.owners, out: Actions::new() }
    }

    fn ask<T>(&mut self, ask: impl FnOnce(&mut State<&'static str, Cell>, Applying<'_, &'static str, Cell>) -> T) -> T {
        let at = Applying { now: self.now, random: &mut TestRandom(&mut self.owners), out: &mut self.out };
        let last_answer = ask(&mut self.state, at);
        self.state.check(self.now).unwrap();
        last_answer
    }

    fn apply(&mut self, event: Event) {
        self.ask(|state, at| state.apply(at, event));
    }

    /// Lets time pass, and looks at what is due by then.
    fn pass(&mut self, time: Duration) {
        let end = self.now.plus(time);
        while self.state.next() <= end {
            self.now = self.now.max(self.state.next());
            self.apply(Event::Tick);
        }
        self.now = end;
    }

    fn join(&mut self, member: Member, who: &'static str, options: LockOptions, limit: Moment) -> WaiterId {
        self.join_in(member, who, Mode::Exclusive, options, limit)
    }

    fn join_in(
        &mut self,
        member: Member,
        handle: &'static str,
        mode: Mode,
        options: LockOptions,
        limit: Moment,
    ) -> WaiterId {
        let join = Join { member, key: key(), mode, options, limit, handle };
        self.ask(|state, at| state.join(at, join)).0
    }

    /// One who waits for ever.
    fn waits(&mut self, member: Member, who: &'static str) -> WaiterId {
        self.join(member, who, renewing(), Moment::NEVER)
    }

    /// A reader who waits for ever.
    fn reads(&mut self, member: Member, who: &'static str) -> WaiterId {
        self.join_in(member, who, Mode::Shared, renewing(), Moment::NEVER)
    }

    /// One who is told at once, and comes for it at once.
    fn holds(&mut self, member: Member, who: &'static str, epoch: u64) -> Granted<Cell> {
        self.holds_in(member, who, Mode::Exclusive, renewing(), epoch)
    }

    fn holds_in(
        &mut self,
        member: Member,
        who: &'static str,
        mode: Mode,
        options: LockOptions,
        epoch: u64,
    ) -> Granted<Cell> {
        let id = self.join_in(member, who, mode, options, Moment::NEVER);
        self.grants(epoch);
        self.comes(id, who)
    }

    /// The caller is told that it has the lock, and comes for it.
    fn comes(&mut self, id: WaiterId, who: &'static str) -> Granted<Cell> {
        let granted = self.granted(who);
        assert_eq!(self.collect(id, &granted), Collected::Yes);
        granted
    }

    /// One who asks for a detached lock: the request, and the new owner.
    fn attaches(&mut self, member: Member, who: &'static str, grant: GrantRef) -> (WaiterId, RequestId, OwnerId) {
        let (mode, options, limit) = (Mode::Exclusive, renewing(), self.now);
        let join = Join { member, key: key(), mode, options, limit, handle: who };
        let id = self.ask(|state, at| state.attach(at, Attach { join, grant, number: 3 }));
        let (request, owner) = self.one("a lock to be taken over", |action| match action {
            Action::Send { request: Request::TakeOver(request, _, owner, _), .. } => Some((*request, *owner)),
            _ => None,
        });
        (id, request, owner)
    }

    /// The store answers the only claim.
    fn answers(&mut self, answer: Result<Attempt>) {
        let (request, _) = self.claim();
        self.answer(request, answer);
    }

    /// The store grants the only claim.
    fn grants(&mut self, epoch: u64) {
        self.answers(Ok(Attempt::Granted { epoch: Some(epoch) }));
    }

    /// The store carries the only release out.
    fn frees(&mut self) {
        let (request, _) = self.release();
        self.released(request, Ok(LeaseStatus::Held));
    }

    /// The subscription that is asked for.
    fn subscribe(&mut self) -> RequestId {
        self.one("a subscription", |action| match action {
            Action::Send { request: Request::Subscribe(request, _), .. } => Some(*request),
            _ => None,
        })
    }

    /// It begins.
    fn listens(&mut self) -> RequestId {
        let request = self.subscribe();
        self.apply(Event::Subscribed { request, begun: true });
        request
    }

    /// All leases of the key are released by force.
    fn forces(&mut self) {
        let leases = self.state.leases(&key(), None);
        self.apply(Event::ForceReleased { key: key(), leases });
    }

    /// The only thing of this kind that was done, which is looked at with this.
    fn one<T>(&mut self, what: &str, find: impl Fn(&Done) -> Option<T>) -> T {
        let mut found = self.all(find);
        assert_eq!(found.len(), 1, "{what}, beside {:#?}", self.out);
        found.remove(0)
    }

    fn all<T>(&mut self, find: impl Fn(&Done) -> Option<T>) -> Vec<T> {
        let (mut found, mut rest) = (Vec::new(), Actions::new());
        for action in self.out.drain(..) {
            match find(&action) {
                Some(it) => found.push(it),
                None => rest.push(action),
            }
        }
        self.out = rest;
        found
    }

    fn claims(&mut self) -> Vec<(RequestId, Claim)> {
        self.all(|action| match action {
            Action::Send { request: Request::Claim(id, claim), .. } => Some((*id, claim.clone())),
            _ => None,
        })
    }

    fn claim(&mut self) -> (RequestId, Claim) {
        let mut claims = self.claims();
        assert_eq!(claims.len(), 1, "one claim, and not {claims:?}");
        claims.remove(0)
    }

    fn releases(&mut self) -> Vec<(RequestId, GrantRef)> {
        self.all(|action| match action {
            Action::Send { request: Request::Release(id, grant), .. } => Some((*id, grant.clone())),
            _ => None,
        })
    }

    fn release(&mut self) -> (RequestId, GrantRef) {
        let mut releases = self.releases();
        assert_eq!(releases.len(), 1, "one release, and not {releases:?}");
        releases.remove(0)
    }

    fn renewals(&mut self) -> Vec<Batch> {
        self.all(|action| match action {
            Action::Send { request: Request::Renew(batch), .. } => Some(batch.clone()),
            _ => None,
        })
    }

    /// What this caller was told, if it was.
    fn outcome(&mut self, who: &'static str) -> Option<Outcome<Cell>> {
        let mut told = self.all(|action| match action {
            Action::Wake(handle, outcome) if *handle == who => Some(outcome.clone()),
            _ => None,
        });
        assert!(told.len() < 2, "{who} was told twice: {told:?}");
        told.pop()
    }

    fn granted(&mut self, who: &'static str) -> Granted<Cell> {
        match self.outcome(who) {
            Some(Outcome::Granted(granted)) => granted,
            other => panic!("{who} was told {other:?}"),
        }
    }

    /// How leases ended.
    fn ends(&mut self) -> Vec<End> {
        self.all(|action| match action {
            Action::End { end, .. } => Some(*end),
            _ => None,
        })
    }

    /// The kind of failure that this caller was told.
    fn failed(&mut self, who: &'static str) -> ErrorKind {
        match self.outcome(who) {
            Some(Outcome::Failed(error)) => error.kind(),
            other => panic!("{who} was told {other:?}"),
        }
    }

    /// Whose requests others depend on from now on.
    fn detached(&mut self) -> Vec<&'static str> {
        self.all(|action| match action {
            Action::Detached(who) => Some(*who),
            _ => None,
        })
    }

    fn limits(&mut self) -> Vec<Moment> {
        self.all(|action| match action {
            Action::Limit(_, limit) => Some(*limit),
            _ => None,
        })
    }

    /// Comes for what it was told.
    fn collect(&mut self, id: WaiterId, granted: &Granted<Cell>) -> Collected {
        self.ask(|state, _| state.collect(id, &granted.guard))
    }

    /// Those who were called, and answer nothing yet.
    fn called(&mut self) -> Vec<&'static str> {
        self.all(|action| match action {
            Action::Wake(who, Outcome::Called) => Some(*who),
            _ => None,
        })
    }

    /// The task of this caller is polled.
    fn polled(&mut self, id: WaiterId) {
        self.apply(Event::Polled(key(), id));
    }

    fn answer(&mut self, request: RequestId, answer: Result<Attempt>) {
        self.apply(Event::Answered { request, answer });
    }

    fn grant(&mut self, request: RequestId, epoch: u64) {
        self.answer(request, Ok(Attempt::Granted { epoch: Some(epoch) }));
    }

    fn released(&mut self, request: RequestId, answer: Result<LeaseStatus>) {
        self.apply(Event::Released { request, answer });
    }

    fn release_guard(&mut self, guard: GuardRef, by: Option<&'static str>) -> GuardRelease {
        self.ask(|state, at| state.release_guard(at, &guard, by))
    }
}
