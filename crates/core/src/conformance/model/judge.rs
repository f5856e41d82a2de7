//! What a store may answer: the contract, asked from outside.
//!
//! A step is carried out at some moment between its sending and its answer, so a lease ends in a span, and not at a moment. While the
//! end of a lease may have come, each choice of what has ended is followed, until an answer decides it. After that the choice counts for
//! every kind of step and both modes: a store has one rule for when a lease is over.

use std::time::{Duration, SystemTime};

use crate::clock::Moment;
use crate::reference::{Claimed, End, Key, Lease};
use crate::{
    Attempt, Capabilities, Capability, Claim, FencingToken, GrantRef, Holder, LeaseStatus, Mode, OwnerId, Renewal,
};

/// When a lease ends, seen from outside: the first and the last moment at which it may.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Span {
    pub(super) from: Moment,
    pub(super) to: Moment,
}

impl End for Span {
    fn or_later(self, other: Self) -> Self {
        Self { from: self.from.max(other.from), to: self.to.max(other.to) }
    }
}

/// When a step was sent, and when it was answered.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asked {
    pub(super) sent: Moment,
    pub(super) answered: Moment,
    /// Whether other steps of the key were under way.
    pub(super) met: bool,
}

/// A step of a store.
#[derive(Clone, Debug)]
pub(super) enum Step {
    Claim(Claim),
    Renew(Vec<Renewal>),
    Release(GrantRef),
    TakeOver(GrantRef, OwnerId, Duration),
    Downgrade(GrantRef, Claim),
    Force(Option<u64>),
    Inspect,
    List,
}

/// The answer of a store.
#[derive(Clone, Debug)]
pub(super) enum Answer {
    Attempt(Attempt),
    Statuses(Vec<LeaseStatus>),
    Holders(Vec<Holder>),
    /// A listing has what it was not asked for.
    Misfit(String),
    /// The store cannot do this, and did nothing.
    Unsupported,
}

/// A step, its answer, and when.
#[derive(Clone, Debug)]
pub(super) struct Heard {
    pub(super) step: Step,
    pub(super) answer: Answer,
    pub(super) at: Asked,
}

/// An answer that the contract does not allow.
#[derive(Clone, Debug)]
pub(super) struct Wrong {
    /// The clause that it breaks.
    pub(super) clause: &'static str,
    pub(super) why: String,
}

type Next = Result<Key<Span>, Wrong>;

/// What a clock of whole milliseconds may hide.
const TICK: Duration = Duration::from_millis(1);
/// What a store may add while it computes what is left, and while its clock is read and rounded.
const ROUNDED: Duration = Duration::from_millis(2);
/// By how much the clocks of several servers of a store may differ.
const CLOCKS_DIFFER: Duration = Duration::from_millis(100);
/// So many ways to explain all answers are followed at most.
const MOST_WAYS: usize = 256;

/// What is known about one key: every state that explains all answers until now.
#[derive(Debug)]
pub(super) struct Judge {
    claims: Capabilities,
    states: Vec<Key<Span>>,
    /// Owners, in the order in which they came.
    owners: Vec<OwnerId>,
    /// Whether it is shown when a holder was granted the key.
    is_dated: bool,
    /// The newest epoch before the steps that meet, and the epochs that they gave, if they are all of readers: of readers at one moment,
    /// each may have the smaller one (C4).
    readers: Option<(u64, Vec<(u64, Asked)>)>,
    /// The greatest epoch that was granted, and when that was answered.
    newest: Option<(u64, Moment)>,
    /// Until then somebody who waited has his turn, where writers hold readers back, and readers writers.
    turn_until: Moment,
}

impl Judge {
    pub(super) fn new(claims: Capabilities, is_dated: bool) -> Self {
        Self {
            claims,
            states: vec![Key::new(0)],
            owners: Vec::new(),
            is_dated,
            readers: None,
            newest: None,
            turn_until: Moment::default(),
        }
    }

    /// A name for an owner in what is told: a, b, c.
    pub(super) fn name(&mut self, owner: OwnerId) -> String {
        let place = self.owners.iter().position(|known| *known == owner).unwrap_or_else(|| {
            self.owners.push(owner);
            self.owners.len() - 1
        });
        Self::owner(place)
    }

    fn owner(place: usize) -> String {
        let letter = char::from(b'a' + u8::try_from(place % 26).unwrap_or(0));
        if place < 26 { letter.to_string() } else { format!("{letter}{}", place / 26) }
    }

    fn lease(&self, lease: &Lease<Span>, at: Asked) -> String {
        let place = self.owners.iter().position(|known| *known == lease.owner).unwrap_or(self.owners.len());
        let left = (lease.ends.from.since(at.answered), lease.ends.to.since(at.sent));
        format!("{}, {}, with {:.2?} to {:.2?} left", Self::owner(place), lease.mode, left.0, left.1)
    }

    /// The first moment, after this one, at which a lease may end.
    pub(super) fn next_end(&self, now: Moment) -> Option<Moment> {
        let ends = self.states.iter().flat_map(|key| key.leases.iter().map(|lease| lease.ends.from));
        ends.filter(|end| *end > now).min()
    }

    /// The leases in the way of this mode, where it is known that they go on for a while.
    pub(super) fn stay_in_the_way(&self, mode: Mode, now: Moment) -> Vec<(OwnerId, u64, Mode)> {
        const WHILE: Duration = Duration::from_secs(5);
        let [key] = &self.states[..] else { return Vec::new() };
        let live = || key.leases.iter().filter(|lease| lease.ends.to > now);
        if live().any(|lease| lease.ends.from < now.plus(WHILE)) {
            return Vec::new();
        }
        let stay = key.in_the_way(mode).filter(|lease| lease.ends.to > now);
        stay.map(|lease| (lease.owner, lease.epoch, lease.mode)).collect()
    }

    /// Somebody waited for the key: where waiters have turns, others may find it busy for a while.
    pub(super) fn has_turns(&mut self, now: Moment) {
        const TURN: Duration = Duration::from_secs(3);
        if self.claims.has(Capability::WriterIntent) {
            self.turn_until = now.plus(TURN);
        }
    }

    /// Whether the lease of an owner may be over, and may not.
    pub(super) fn may_end(&self, owner: OwnerId, now: Moment) -> bool {
        const ABOUT: Duration = Duration::from_millis(50);
        let mut leases = self.states.iter().filter_map(|key| key.of(owner));
        leases.any(|lease| lease.ends.from < now.plus(ABOUT) && now < lease.ends.to.plus(ABOUT))
    }

    /// Whether an owner may hold the key now.
    pub(super) fn may_hold(&self, owner: OwnerId, now: Moment) -> bool {
        self.states.iter().any(|key| key.of(owner).is_some_and(|lease| lease.ends.to > now))
    }

    /// The epoch of the lease of an owner.
    pub(super) fn epoch_of(&self, owner: OwnerId) -> Option<u64> {
        self.states.iter().find_map(|key| key.of(owner)).map(|lease| lease.epoch)
    }

    /// The end of a lease that a store gives at a moment between `sent` and `answered`.
    fn end_of(&self, ttl: Duration, at: Asked) -> Span {
        if !self.claims.has(Capability::Lease) {
            return Span { from: Moment::NEVER, to: Moment::NEVER };
        }
        let last = at.answered.plus(ttl + TICK + self.claims.lease_granularity());
        Span { from: at.sent.plus(ttl.saturating_sub(TICK)), to: last }
    }

    /// Takes the answers to steps that met into account: they have to be those of one step after the other, in some order (Herlihy and
    /// Wing, "Linearizability", TOPLAS 1990).
    pub(super) fn hear(&mut self, met: &[Heard]) -> Result<(), Wrong> {
        self.readers = self.states.iter().map(|key| key.epoch).max().zip(granted_to_readers(met));
        let mut after = Followed::default();
        self.follow(&self.states, &met.iter().collect::<Vec<_>>(), &mut after);
        if let (true, Some((_, wrong))) = (after.states.is_empty(), after.wrong) {
            return Err(wrong);
        }
        met.iter().try_for_each(|heard| self.follows_the_clock(heard))?;
        after.states.truncate(MOST_WAYS);
        self.states = after.states;
        Ok(())
    }

    /// Whether an epoch is not behind the clock of the store, where it says when a key was granted. What that clock says is not known
    /// here, but how much time has passed is.
    fn follows_the_clock(&mut self, heard: &Heard) -> Result<(), Wrong> {
        let epoch = match &heard.answer {
            Answer::Attempt(Attempt::Granted { epoch: Some(epoch) }) => *epoch,
            _ => return Ok(()),
        };
        let before = self.newest.filter(|(before, _)| *before < epoch);
        let least = before.map(|(before, answered)| {
            let passed = heard.at.sent.since(answered).saturating_sub(CLOCKS_DIFFER);
            before + FencingToken::epoch_at(passed).saturating_sub(FencingToken::MOST_AHEAD)
        });
        if let Some(least) = least.filter(|least| self.is_dated && epoch < *least) {
            let why = format!("the epoch {epoch} is behind the store's clock, which is at {least} by the epoch before");
            return broken("C4", why);
        }
        if self.newest.is_none() || before.is_some() {
            self.newest = Some((epoch, heard.at.answered));
        }
        Ok(())
    }

    /// Follows each order of the steps that are left.
    fn follow(&self, states: &[Key<Span>], left: &[&Heard], after: &mut Followed) {
        if left.is_empty() {
            after.add(states);
        }
        for (place, heard) in left.iter().enumerate() {
            if left.iter().any(|other| other.at.answered < heard.at.sent) {
                continue;
            }
            let mut next = Followed::default();
            for world in states.iter().flat_map(|key| worlds(key, heard.at)) {
                match self.carry_out(world, &heard.step, &heard.answer, heard.at) {
                    Ok(world) => next.add(&[world]),
                    Err(wrong) => after.fails(left.len(), wrong),
                }
            }
            let mut left = left.to_vec();
            left.remove(place);
            if !next.states.is_empty() {
                self.follow(&next.states, &left, after);
            }
        }
    }

    fn carry_out(&self, key: Key<Span>, step: &Step, answer: &Answer, at: Asked) -> Next {
        match (step, answer) {
            (Step::Claim(claim), Answer::Attempt(attempt)) => self.claim(key, claim, attempt, at),
            (Step::Renew(renewals), Answer::Statuses(statuses)) => self.renew(key, renewals, statuses, at),
            (Step::Release(grant), Answer::Statuses(statuses)) => self.release(key, grant, statuses, at),
            (Step::TakeOver(grant, owner, ttl), Answer::Statuses(statuses)) => {
                self.take_over(key, grant, (*owner, *ttl), statuses, at)
            }
            (Step::Downgrade(writer, claim), Answer::Attempt(attempt)) => {
                self.downgrade(key, writer, claim, attempt, at)
            }
            (Step::Force(only), Answer::Holders(holders)) => self.force(key, *only, holders, at),
            (Step::Force(Some(only)), Answer::Unsupported) => {
                let shared = key.leases.iter().any(|lease| lease.epoch == *only && lease.mode == Mode::Shared);
                if shared { Ok(key) } else { broken("C25", "a forced release by token is unsupported".into()) }
            }
            (Step::Inspect | Step::List, Answer::Holders(holders)) => {
                self.shows(&key.leases, holders, at)?;
                Ok(key)
            }
            (Step::List, Answer::Misfit(why)) => broken("C25", why.clone()),
            other => broken("C25", format!("{other:?} is no answer to this step")),
        }
    }

    fn claim(&self, mut key: Key<Span>, claim: &Claim, attempt: &Attempt, at: Asked) -> Next {
        let told = match attempt {
            Attempt::Granted { epoch } => Some(*epoch),
            Attempt::Queued { .. } if !(claim.waits && self.claims.has(Capability::Queue)) => {
                return broken("C10", "a claim that does not wait, or of a store without a queue, was queued".into());
            }
            _ => None,
        };
        let (before, again) = (key.clone(), key.of(claim.owner).is_some());
        let next = |newest| self.next(self.newest_before(claim, told.flatten(), at, newest), told.flatten());
        match (key.claim(claim, next, self.end_of(claim.ttl, at)), told) {
            (Claimed::Granted(epoch), Some(told)) => self.is_epoch(epoch, told, again).map(|()| key),
            (Claimed::TooSoon, Some(told)) => {
                broken("C4", format!("the epoch {told:?} came after the epoch {}", key.epoch))
            }
            (Claimed::Busy(leases), Some(_)) => broken("C1", format!("granted beside {}", self.lease(&leases[0], at))),
            (Claimed::Granted(_), None) if again => broken("C2", "a repeated claim has the grant that it got".into()),
            // It may be a message that came late, of a lease that was ended by force.
            (Claimed::Granted(_) | Claimed::TooSoon, None)
                if at.sent < self.turn_until || before.forced.iter().any(|lease| lease.owner == claim.owner) =>
            {
                Ok(before)
            }
            (Claimed::Granted(_) | Claimed::TooSoon, None) => {
                broken("C3", "busy, though nothing stands in the way".into())
            }
            (Claimed::Busy(leases), None) => {
                tells_who_holds(&leases, attempt)?;
                self.tells_what_is_left(&leases, attempt, at).map(|()| key)
            }
        }
    }

    /// The epoch that this grant has to exceed, where `newest` is that of the key.
    fn newest_before(&self, claim: &Claim, told: Option<u64>, at: Asked, newest: u64) -> u64 {
        let Some((before, readers)) = self.readers.as_ref().filter(|_| claim.mode == Mode::Shared) else {
            return newest;
        };
        if readers.iter().filter(|(epoch, _)| Some(*epoch) == told).count() > 1 {
            return newest;
        }
        let earlier = readers.iter().filter(|(_, other)| other.answered < at.sent).map(|(epoch, _)| *epoch);
        earlier.fold(*before, u64::max).min(newest)
    }

    /// The epoch after the newest one: the one that the store told, if that is greater. A store that gives none has them all.
    fn next(&self, newest: u64, told: Option<u64>) -> Option<u64> {
        let counted = (!self.claims.has(Capability::Fencing)).then_some(newest + 1);
        told.or(counted).filter(|epoch| *epoch > newest)
    }

    fn is_epoch(&self, epoch: u64, told: Option<u64>, again: bool) -> Result<(), Wrong> {
        if told.is_some() != self.claims.has(Capability::Fencing) {
            return broken("C4", format!("granted with the epoch {told:?}"));
        }
        match told {
            Some(told) if told != epoch && again => {
                broken("C2", format!("the same grant has epoch {epoch}, and now {told}"))
            }
            Some(told) if told > FencingToken::MAX_EPOCH => broken("C4", format!("the epoch {told} is too large")),
            _ => Ok(()),
        }
    }

    fn tells_what_is_left(&self, leases: &[Lease<Span>], attempt: &Attempt, at: Asked) -> Result<(), Wrong> {
        let (Attempt::Busy { retry_in: told } | Attempt::HeldBy { retry_in: told, .. }) = attempt else {
            return Ok(());
        };
        let Some(told) = told.filter(|_| self.claims.has(Capability::Lease)) else {
            // Of many readers, it may cost too much to say when the last one ends; and of a lease that ends now, nothing is left.
            let known = |lease: &Lease<Span>| lease.mode == Mode::Exclusive && lease.ends.from > at.answered;
            let hidden = self.claims.has(Capability::Lease) && leases.iter().all(known);
            return if hidden { broken("C10", "busy, without what is left of the lease".into()) } else { Ok(()) };
        };
        // The lease that ends first would do as well as the last.
        if leases.iter().any(|lease| self.is_left(lease, told, at)) {
            return Ok(());
        }
        broken("C10", format!("busy for {told:?}, behind {}", self.lease(&leases[0], at)))
    }

    fn is_left(&self, lease: &Lease<Span>, told: Duration, at: Asked) -> bool {
        let slack = ROUNDED + self.claims.lease_granularity();
        let (shortest, longest) = (lease.ends.from.since(at.answered), lease.ends.to.since(at.sent));
        told + slack >= shortest && told <= longest + slack
    }

    fn renew(&self, mut key: Key<Span>, renewals: &[Renewal], statuses: &[LeaseStatus], at: Asked) -> Next {
        if renewals.len() != statuses.len() {
            return broken("C9", format!("{} renewals have {} answers", renewals.len(), statuses.len()));
        }
        for (renewal, told) in renewals.iter().zip(statuses) {
            let before = key.clone();
            let right = key.renew(&renewal.grant, self.end_of(renewal.ttl, at));
            // Only waiters in a queue have an owner for several leases.
            let of_another_epoch = before.of(renewal.grant.owner).is_some() && right != LeaseStatus::Held;
            if of_another_epoch && !self.claims.has(Capability::Queue) && *told == LeaseStatus::Held {
                let epoch = before.of(renewal.grant.owner).map(|lease| lease.epoch);
                key.renew(&GrantRef { epoch, ..renewal.grant.clone() }, self.end_of(renewal.ttl, at));
                continue;
            }
            self.is_status("C9", right, *told, &before, &renewal.grant, at)?;
            may_forget(&mut key, *told, renewal.grant.owner, at);
        }
        Ok(key)
    }

    fn release(&self, mut key: Key<Span>, grant: &GrantRef, statuses: &[LeaseStatus], at: Asked) -> Next {
        let before = key.clone();
        let right = key.release(grant);
        let told = statuses.first().copied().unwrap_or(LeaseStatus::NotHeld);
        // What an earlier epoch of a session may release, each store has its own rule for.
        let another = |lease: &Lease<Span>| grant.epoch.is_some_and(|epoch| epoch != lease.epoch);
        let sessions = self.claims.has(Capability::Reentrancy);
        if sessions && before.of(grant.owner).is_some_and(another) && told != LeaseStatus::Held {
            return Ok(before);
        }
        may_forget(&mut key, told, grant.owner, at);
        self.is_status("C20", right, told, &before, grant, at).map(|()| key)
    }

    fn take_over(
        &self,
        mut key: Key<Span>,
        grant: &GrantRef,
        (owner, ttl): (OwnerId, Duration),
        statuses: &[LeaseStatus],
        at: Asked,
    ) -> Next {
        let before = key.clone();
        let again = before.of(owner).cloned();
        let right = key.take_over(grant, owner, self.end_of(ttl, at));
        if let (Some(before), Some(lease)) = (again, key.leases.iter_mut().find(|lease| lease.owner == owner)) {
            // Whether a repeated step prolongs the lease once more is left to the store.
            lease.ends.from = before.ends.from;
        }
        let told = statuses.first().copied().unwrap_or(LeaseStatus::NotHeld);
        self.is_status("C28", right, told, &before, grant, at).map(|()| key)
    }

    fn downgrade(&self, mut key: Key<Span>, writer: &GrantRef, claim: &Claim, attempt: &Attempt, at: Asked) -> Next {
        let told = if let Attempt::Granted { epoch } = attempt { Some(*epoch) } else { None };
        let newest = key.epoch;
        let Some(epoch) = self.next(newest, told.flatten()).or(told.is_none().then_some(newest + 1)) else {
            return broken("C29", format!("the reader has the epoch {told:?}, and the newest is {newest}"));
        };
        let before = key.clone();
        match (key.downgrade(writer, claim, epoch, self.end_of(claim.ttl, at)), told) {
            (true, Some(told)) => self.is_epoch(epoch, told, false).map(|()| key),
            (false, None) => Ok(before),
            (true, None) => broken("C29", "the writer is there, and became no reader".into()),
            (false, Some(_)) => broken("C29", "a reader was made of a writer that is not there".into()),
        }
    }

    fn force(&self, mut key: Key<Span>, only: Option<u64>, holders: &[Holder], at: Asked) -> Next {
        let mut ended = key.force(only);
        if at.met {
            // A store may look, and then end what it saw: a lease that is prolonged in between had less left.
            for lease in &mut ended {
                lease.ends.from = lease.ends.from.min(at.sent);
            }
        }
        self.shows(&ended, holders, at).map(|()| key)
    }

    fn is_status(
        &self,
        clause: &'static str,
        right: LeaseStatus,
        told: LeaseStatus,
        key: &Key<Span>,
        grant: &GrantRef,
        at: Asked,
    ) -> Result<(), Wrong> {
        match (right, told) {
            (LeaseStatus::Held, LeaseStatus::Held) => Ok(()),
            (LeaseStatus::Held, _) => {
                let lease = key.leases.iter().find(|lease| lease.owner == grant.owner);
                let lease = lease.map(|lease| self.lease(lease, at)).unwrap_or_default();
                broken(clause, format!("{told:?}, though the lease is there: {lease}"))
            }
            (_, LeaseStatus::Held) => broken(clause, "Held, though the lease is not there".into()),
            // An operator may have met the rest of a lease that ends in steps.
            (LeaseStatus::NotHeld, LeaseStatus::ForceReleased) if self.claims.lease_granularity().is_zero() => {
                broken("C6", "a forced release is told to an owner whose lease was not ended by force".into())
            }
            (LeaseStatus::ForceReleased, LeaseStatus::NotHeld) if clause == "C9" && self.must_tell(key, grant, at) => {
                broken("C25", "a renewal does not tell that the lease was ended by force".into())
            }
            _ => Ok(()),
        }
    }

    /// Whether the lease was ended by the last forced release, alone or with the readers beside it, of whom one was granted last, and
    /// would go on. What came before, a store need not remember.
    fn must_tell(&self, key: &Key<Span>, grant: &GrantRef, at: Asked) -> bool {
        let at_once = &key.forced[key.forced.len().saturating_sub(key.forced_at_once)..];
        let is_last = at_once.iter().any(|lease| lease.epoch == key.epoch);
        let goes_on = at_once.iter().any(|lease| lease.is(grant) && lease.ends.from > at.answered);
        self.claims.has(Capability::ForceNotice) && is_last && goes_on
    }

    /// Whether these leases are shown, each as it is, and no other.
    fn shows(&self, leases: &[Lease<Span>], holders: &[Holder], at: Asked) -> Result<(), Wrong> {
        let mut holders: Vec<_> = holders.iter().collect();
        for lease in leases {
            let shown = holders.iter().position(|holder| self.differs(lease, holder, at).is_none());
            let Some(shown) = shown else {
                return broken("C25", self.not_shown(lease, &holders, at));
            };
            holders.swap_remove(shown);
        }
        if holders.is_empty() { Ok(()) } else { broken("C25", format!("shown, and not there: {}", shown_as(&holders))) }
    }

    /// What is said of a lease that is not shown as it is: the author looks for what differs.
    fn not_shown(&self, lease: &Lease<Span>, holders: &[&Holder], at: Asked) -> String {
        let token = FencingToken::of_epoch(lease.epoch);
        let nearly = holders.iter().find(|holder| holder.token == Some(token));
        let differs = nearly.and_then(|holder| self.differs(lease, holder, at));
        let differs = differs.map(|what| format!(", {what}")).unwrap_or_default();
        format!("{} is not in what is shown{differs}: {}", self.lease(lease, at), shown_as(holders))
    }

    /// In what the shown holder is not this lease.
    fn differs(&self, lease: &Lease<Span>, holder: &Holder, at: Asked) -> Option<String> {
        let token = self.claims.has(Capability::Fencing).then(|| FencingToken::of_epoch(lease.epoch));
        let left = match holder.remaining {
            Some(left) => self.is_left(lease, left, at),
            None => !self.claims.has(Capability::Lease),
        };
        // A store need not tell a text that is empty from none.
        let same = |shown: &Option<String>, given: Option<&str>| {
            shown.as_deref().unwrap_or_default() == given.unwrap_or_default()
        };
        let since = holder.granted_at.is_none_or(|since| apart(since, FencingToken::time_of(lease.epoch)) <= ROUNDED);
        let texts = [("label", &holder.label, &lease.label), ("reason", &holder.reason, &lease.reason)];
        let text = texts.into_iter().find(|(_, shown, given)| !same(shown, given.as_deref()));
        let parts = [(left, "what is left"), (since, "when it was granted"), (holder.mode == lease.mode, "its mode")];
        let parts = parts.into_iter().chain([(holder.token == token, "its token")]);
        let part = parts.filter(|(is_right, _)| !is_right).map(|(_, what)| format!("{what} is another")).next();
        part.or_else(|| {
            text.map(|(what, shown, given)| format!("its {what} is {}", apart_from(shown.as_deref(), given.as_deref())))
        })
    }
}

/// The states that explain the answers, and what is wrong where there is none.
#[derive(Default)]
struct Followed {
    states: Vec<Key<Span>>,
    /// Of the order that explains the most, with how many steps were left.
    wrong: Option<(usize, Wrong)>,
}

impl Followed {
    fn add(&mut self, states: &[Key<Span>]) {
        for state in states {
            if !self.states.contains(state) {
                self.states.push(state.clone());
            }
        }
    }

    fn fails(&mut self, left: usize, wrong: Wrong) {
        match &mut self.wrong {
            Some((before, _)) if left > *before => {}
            // Which of the orders was meant is not known: each may name what is wrong.
            Some((before, told)) if left == *before => {
                if left > 1 && told.why.lines().count() < 3 && !told.why.contains(&wrong.why) {
                    told.why = format!("{}\n← or, in another order, {}: {}", told.why, wrong.clause, wrong.why);
                }
            }
            _ => self.wrong = Some((left, wrong)),
        }
    }
}

/// Two texts that differ: all of them, or their lengths where they are long.
fn apart_from(shown: Option<&str>, given: Option<&str>) -> String {
    const LONG: usize = 80;
    let (shown, given) = (shown.unwrap_or_default(), given.unwrap_or_default());
    if shown.len().max(given.len()) > LONG {
        return format!("one of {} bytes and not of {}", shown.len(), given.len());
    }
    format!("{shown:?} and not {given:?}")
}

/// Whoever is queued takes a notification for its grant only if that has a larger epoch than it is told here. Nothing may be told, too.
fn tells_who_holds(leases: &[Lease<Span>], attempt: &Attempt) -> Result<(), Wrong> {
    match attempt {
        Attempt::Queued { epoch_of_holder: Some(told), .. } if leases.iter().any(|lease| lease.epoch > *told) => {
            broken("C1", format!("who waits is told of a holder with the epoch {told}, and there is a newer one"))
        }
        _ => Ok(()),
    }
}

fn broken<T>(clause: &'static str, why: String) -> Result<T, Wrong> {
    Err(Wrong { clause, why })
}

/// Once told of a forced release, a store may forget it: as if the lease had ended long ago.
fn may_forget(key: &mut Key<Span>, told: LeaseStatus, owner: OwnerId, at: Asked) {
    if told == LeaseStatus::ForceReleased {
        key.forced.iter_mut().filter(|lease| lease.owner == owner).for_each(|lease| lease.ends.from = at.sent);
    }
}

fn apart(one: SystemTime, other: SystemTime) -> Duration {
    one.duration_since(other).unwrap_or_else(|earlier| earlier.duration())
}

/// Holders in few words.
fn shown_as(holders: &[&Holder]) -> String {
    let cut = |text: &Option<String>| text.as_ref().map(|text| text.chars().take(12).collect::<String>());
    let one = |holder: &&Holder| {
        let texts = (cut(&holder.label), cut(&holder.reason));
        let (epoch, left) = (holder.token.map(FencingToken::epoch), holder.remaining);
        let since = holder.granted_at.zip(epoch).map(|(since, epoch)| apart(since, FencingToken::time_of(epoch)));
        format!("{}, epoch {epoch:?}, {left:?} left, granted {since:?} apart from its epoch, {texts:?}", holder.mode)
    };
    let all: Vec<_> = holders.iter().map(one).collect();
    if all.is_empty() { "nobody".to_owned() } else { all.join("; ") }
}

/// Every choice of which leases had ended when a step was carried out.
fn worlds(key: &Key<Span>, at: Asked) -> Vec<Key<Span>> {
    let mut worlds = vec![Key { leases: Vec::new(), ..key.clone() }];
    for lease in &key.leases {
        if lease.ends.to <= at.sent {
            continue;
        }
        let mut alive = lease.clone();
        alive.ends.from = alive.ends.from.max(at.sent);
        let with = worlds.iter().cloned().map(|mut world| {
            world.leases.push(alive.clone());
            world
        });
        let with: Vec<_> = with.collect();
        if lease.ends.from <= at.answered {
            // The state in which it goes on comes first: it is what a wrong answer is told to contradict.
            worlds = with.into_iter().chain(worlds).collect();
        } else {
            worlds = with;
        }
    }
    worlds
}

/// The epochs that these steps gave, and when; nothing if one of them is not a reader's.
fn granted_to_readers(met: &[Heard]) -> Option<Vec<(u64, Asked)>> {
    let mut readers = Vec::new();
    for heard in met {
        if let Answer::Attempt(Attempt::Granted { epoch: Some(epoch) }) = heard.answer {
            let reads = matches!(&heard.step, Step::Claim(claim) if claim.mode == Mode::Shared);
            readers.push(reads.then_some((epoch, heard.at))?);
        }
    }
    Some(readers)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{LockKey, Mode};

    /// Readers that got these epochs, each between two moments (ms), beside a listing that lasts as long as all; `leaves`: the first is
    /// released meanwhile.
    fn hears(readers: [(u64, u64, u64); 2], leaves: bool) -> Result<(), Wrong> {
        let claims = [Capability::Shared, Capability::Lease, Capability::Fencing];
        let claims = claims.into_iter().fold(Capabilities::new("it"), Capabilities::with);
        let moment = |ms| Moment::default().plus(Duration::from_millis(ms));
        let at = |sent, answered| Asked { sent: moment(sent), answered: moment(answered), met: true };
        let key = LockKey::new("k").unwrap();
        let mut met = Vec::new();
        for (epoch, sent, answered) in readers {
            let claim = Claim::new(&key, Mode::Shared, Duration::from_secs(9));
            if leaves && met.is_empty() {
                let answer = Answer::Statuses(vec![LeaseStatus::Held]);
                met.push(Heard { step: Step::Release(claim.grant(None)), answer, at: at(0, 99) });
            }
            let answer = Answer::Attempt(Attempt::Granted { epoch: Some(epoch) });
            met.push(Heard { step: Step::Claim(claim), answer, at: at(sent, answered) });
        }
        met.push(Heard { step: Step::Inspect, answer: Answer::Holders(Vec::new()), at: at(0, 99) });
        Judge::new(claims, false).hear(&met)
    }

    #[test]
    fn of_readers_at_one_moment_each_may_have_the_smaller_token_and_no_two_have_one() {
        assert!(hears([(7, 0, 30), (6, 0, 30)], false).is_ok());
        assert!(hears([(6, 0, 30), (7, 0, 30)], true).is_ok());
        let wrong = |readers, leaves| hears(readers, leaves).unwrap_err().clause;
        assert_eq!(wrong([(7, 0, 10), (6, 20, 30)], false), "C4");
        assert_eq!(wrong([(7, 0, 30), (7, 0, 30)], true), "C4");
        assert_eq!(wrong([(7, 0, 30), (7, 0, 30)], false), "C4");
    }
}
