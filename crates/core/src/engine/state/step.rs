//! What an event on one key needs of the rest of the state: the time, the engines and the list of actions.

use std::collections::BTreeMap;
use std::num::NonZeroU64;
use std::sync::Arc;
use std::time::Duration;

use super::event::{Action, Actions, Batch, BatchId, KeyId, Member, Randomness, Request, RequestId, Traits};
use super::key_set::KeySet;
use super::lease::Terms;
use super::waiter::Waiter;
use crate::LockOptions;
use crate::clock::Moment;

/// What an event on one key needs of the rest of the state.
pub(super) struct Step<'s, W, L> {
    pub(super) now: Moment,
    pub(super) random: &'s mut dyn Randomness,
    pub(super) members: &'s mut BTreeMap<Member, Engine>,
    pub(super) next_id: &'s mut u64,
    pub(super) out: &'s mut Actions<W, L>,
    /// The renewals that a tick has collected, over all keys.
    pub(super) batches: &'s mut Batches,
}

/// For each engine, the batch of renewals that is not full yet.
pub(super) type Batches = BTreeMap<Member, Batch>;

/// What the state machine knows of an engine.
#[derive(Clone, Debug)]
pub(super) struct Engine {
    pub(super) traits: Traits,
    pub(super) closed: bool,
    /// The driver keeps the engine alive until no request of it is under way.
    pub(super) kept: bool,
    /// How many claims, releases and take-overs are under way.
    pub(super) under_way: usize,
    /// The keys of which it may have something.
    pub(super) places: KeySet,
    /// The terms of the last lease.
    pub(super) terms: Option<Arc<Terms>>,
    pub(super) round_trip: RoundTrip,
    /// The next moment at which a release that failed is sent again.
    pub(super) repeats_at: Moment,
}

/// How long after each other the releases that failed are sent again, so that many of them do not keep a store down.
const APART: Duration = Duration::from_millis(2);

/// What a round trip is taken to be before the first answer.
const UNKNOWN: Duration = Duration::from_millis(100);

/// The least time by which a wait may pass its limit for an answer that is under way.
const GRACE: Duration = Duration::from_millis(50);

/// The shortest times of answered claims, in this window and in the one before.
///
/// Longer ones say nothing of what is usual: a store that stood still answers many claims late at once, and a caller that is not
/// polled hears its answer late.
#[derive(Clone, Copy, Debug)]
pub(super) struct RoundTrip {
    began: Moment,
    now: Duration,
    before: Duration,
}

impl RoundTrip {
    const WINDOW: Duration = Duration::from_secs(5);

    fn unknown() -> Self {
        Self { began: Moment::default(), now: UNKNOWN, before: UNKNOWN }
    }

    fn took(&mut self, now: Moment, took: Duration) {
        if now.since(self.began) < Self::WINDOW {
            self.now = self.now.min(took);
        } else {
            *self = Self { began: now, now: took, before: self.now };
        }
    }

    pub(super) fn usual(self) -> Duration {
        self.now.min(self.before)
    }
}

impl Engine {
    pub(super) fn new(traits: Traits) -> Self {
        Self {
            traits,
            closed: false,
            kept: false,
            under_way: 0,
            places: KeySet::default(),
            terms: None,
            round_trip: RoundTrip::unknown(),
            repeats_at: Moment::default(),
        }
    }

    pub(super) fn latest(&self, limit: Moment) -> Moment {
        limit.plus((self.round_trip.usual() * 2).max(GRACE).min(self.traits.answers_within))
    }
}

/// For how long a step of the store is waited for: somewhat longer than it may take, because its own error says more.
pub(crate) fn longest(answers_within: Duration) -> Duration {
    answers_within * 5 / 4
}

impl<W, L> Step<'_, W, L> {
    pub(super) fn id(&mut self) -> u64 {
        *self.next_id += 1;
        *self.next_id
    }

    pub(super) fn batch(&mut self) -> BatchId {
        BatchId(NonZeroU64::MIN.saturating_add(self.id()))
    }

    /// The terms of a lease of this engine. Leases with the same terms share them, if they follow each other.
    pub(super) fn terms(&mut self, member: Member, options: &LockOptions, known: bool) -> Arc<Terms> {
        let traits = self.traits(member);
        let terms = Terms::of(member, traits, options, known);
        let Some(engine) = self.members.get_mut(&member) else { return Arc::new(terms) };
        match &engine.terms {
            Some(last) if **last == terms => Arc::clone(last),
            _ => Arc::clone(engine.terms.insert(Arc::new(terms))),
        }
    }

    pub(super) fn request(&mut self, key: KeyId) -> RequestId {
        RequestId(key, self.id())
    }

    pub(super) fn traits(&self, member: Member) -> &Traits {
        &self.members[&member].traits
    }

    pub(super) fn send(&mut self, member: Member, request: Request) {
        self.out.push(Action::Send { member, request, by: None, alone: false });
    }

    pub(super) fn send_by(&mut self, member: Member, request: Request, by: Option<W>, alone: bool) {
        self.out.push(Action::Send { member, request, by, alone });
    }

    pub(super) fn begin(&mut self, member: Member) {
        if let Some(engine) = self.members.get_mut(&member) {
            engine.under_way += 1;
        }
    }

    pub(super) fn ended(&mut self, member: Member) {
        if let Some(engine) = self.members.get_mut(&member) {
            engine.under_way -= 1;
            if engine.under_way == 0 && (engine.closed || std::mem::take(&mut engine.kept)) {
                self.out.push(Action::Idle(member));
            }
        }
    }

    /// Keeps the engine alive for a release that is sent again, also when no handle or guard has the engine any more.
    pub(super) fn keep(&mut self, member: Member) {
        if let Some(engine) = self.members.get_mut(&member)
            && !std::mem::replace(&mut engine.kept, true)
        {
            self.out.push(Action::Keep(member));
        }
    }

    /// When a release is sent again after this pause.
    pub(super) fn repeats_at(&mut self, member: Member, pause: Duration) -> Moment {
        let Some(engine) = self.members.get_mut(&member) else { return Moment::NEVER };
        let turn = engine.repeats_at.max(self.now);
        engine.repeats_at = turn.plus(APART);
        self.now.plus(pause).max(turn)
    }

    pub(super) fn took(&mut self, member: Member, sent_at: Moment) {
        if let Some(engine) = self.members.get_mut(&member) {
            engine.round_trip.took(self.now, self.now.since(sent_at));
        }
    }

    /// When an answer is overdue: the runtime that carries the request is not driven.
    pub(super) fn overdue(&self, member: Member) -> Moment {
        self.now.plus(self.traits(member).answers_within.saturating_mul(2))
    }

    /// Until when this waiter waits for an answer that is under way. A try may have to wait for the claim and the release of a caller
    /// that is gone before its own claim: with a store that is silent, each takes as long as an answer may.
    pub(super) fn latest(&self, waiter: &Waiter<W>) -> Moment {
        let engine = &self.members[&waiter.member];
        if waiter.is_try {
            waiter.limit.plus(longest(engine.traits.answers_within))
        } else {
            engine.latest(waiter.limit)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_took_long_ago_is_forgotten_after_two_windows() {
        let (mut trip, start) = (RoundTrip::unknown(), Moment::default().plus(RoundTrip::WINDOW));
        let (quick, slow) = (Duration::from_millis(5), Duration::from_millis(50));
        trip.took(start, quick);
        trip.took(start.plus(RoundTrip::WINDOW), slow);
        assert_eq!(trip.usual(), quick);
        trip.took(start.plus(RoundTrip::WINDOW * 2), slow);
        assert_eq!(trip.usual(), slow);
    }
}
