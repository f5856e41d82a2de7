//! What tells one situation from another: ids by their order, moments by how far off they are.
//!
//! Every field is named, so that a new one is not forgotten.

use std::time::Duration;

use super::super::event::{Batch, BatchId, LeaseId, Request, RequestId};
use super::store::{self, Holder, Store};
use super::world::{Answer, Asks, At, CellState, Flight, Seat, UNIT, Wants, World, number_of};
use crate::clock::Moment;
use crate::{Attempt, Claim, Error, ErrorKind, LeaseStatus, Notification, OwnerId, Renewal, SessionId};

/// The kinds of numbers of which only the order counts, above the numbers themselves.
const KINDS: u64 = 0xff << 56;
const ID: u64 = 1 << 56;
const OWNER: u64 = 4 << 56;
const EPOCH: u64 = 5 << 56;
pub(super) const HANDLE: u64 = 6 << 56;
pub(super) const CELL: u64 = 7 << 56;

pub(super) struct Encoder {
    pub(super) now: Moment,
    pub(super) side: u64,
    words: Vec<u64>,
}

/// A number that stands for a situation.
pub(super) fn fingerprint(world: &World) -> u128 {
    let mut encoder = Encoder { now: world.now, side: 0, words: Vec::with_capacity(512) };
    encoder.world(world);
    let words = encoder.words;
    let mut ranked: Vec<u64> = words.iter().copied().filter(|word| word & KINDS != 0).collect();
    ranked.sort_unstable();
    ranked.dedup();
    let mut hash = [0x9e37_79b9_7f4a_7c15_u64, 0xc2b2_ae3d_27d4_eb4f];
    for word in words {
        let canonical = if word & KINDS == 0 {
            word
        } else {
            let kind = word & KINDS;
            let first = ranked.partition_point(|other| *other < kind);
            kind | (ranked.partition_point(|other| *other < word) - first) as u64
        };
        hash[0] = mix(hash[0] ^ canonical, 0xa076_1d64_78bd_642f);
        hash[1] = mix(hash[1] ^ canonical, 0xe703_7ed1_a0b4_28db);
    }
    u128::from(hash[0]) << 64 | u128::from(hash[1])
}

fn mix(one: u64, other: u64) -> u64 {
    let product = u128::from(one ^ other.rotate_left(17)) * u128::from(other | 1);
    #[allow(clippy::cast_possible_truncation, reason = "both halves are used")]
    let folded = (product >> 64) as u64 ^ product as u64;
    folded.wrapping_add(one.rotate_left(29))
}

impl Encoder {
    pub(super) fn put(&mut self, word: u64) {
        self.words.push(word);
    }

    pub(super) fn flag(&mut self, flag: bool) {
        self.put(u64::from(flag));
    }

    pub(super) fn count(&mut self, count: usize) {
        self.put(count as u64);
    }

    pub(super) fn id(&mut self, id: u64) {
        self.put((ID * (1 + self.side)) | id);
    }

    pub(super) fn owner(&mut self, owner: OwnerId) {
        self.put(OWNER | number_of(owner));
    }

    pub(super) fn epoch(&mut self, epoch: u64) {
        self.put(EPOCH | epoch.min(!KINDS));
    }

    pub(super) fn option<T>(&mut self, option: Option<T>, put: impl FnOnce(&mut Self, T)) {
        match option {
            None => self.put(9),
            Some(value) => {
                self.put(10);
                put(self, value);
            }
        }
    }

    pub(super) fn list<T>(&mut self, list: impl IntoIterator<Item = T>, mut put: impl FnMut(&mut Self, T)) {
        let at = self.words.len();
        self.put(0);
        let mut count = 0;
        for value in list {
            put(self, value);
            count += 1;
        }
        self.words[at] = count;
    }

    /// How many steps of time from now; what is past is past.
    pub(super) fn future(&mut self, moment: Moment) {
        self.put(match moment {
            Moment::NEVER => 200,
            moment if moment == Moment::default() => 201,
            moment => Self::steps(moment.since(self.now)).min(100),
        });
    }

    pub(super) fn past(&mut self, moment: Moment) {
        let age = Self::steps(self.now.since(moment));
        self.put(age.min(6));
    }

    pub(super) fn length(&mut self, length: Duration) {
        let steps = Self::steps(length);
        self.put(steps.min(100));
    }

    #[allow(clippy::cast_possible_truncation, reason = "a few seconds")]
    fn steps(length: Duration) -> u64 {
        length.as_nanos().div_ceil(UNIT.as_nanos()) as u64
    }

    fn world(&mut self, world: &World) {
        let World {
            config: _,
            now: _,
            sides,
            members: _,
            closed,
            seats,
            flights,
            notifications,
            subscribed,
            store,
            cells,
            evicted,
            lost,
            sessions,
            tokens,
            detached_lock,
            detached,
            attached,
            rests,
            left,
            most,
            refused,
            faulted,
            ids: _,
            busy: _,
            seen: _,
        } = world;
        self.list(sides.iter().enumerate(), |to, (side, state)| {
            to.side = side as u64;
            to.state(state);
        });
        self.list(closed, |to, closed| to.flag(*closed));
        self.list(seats.iter().enumerate(), |to, (index, seat)| {
            to.side = world.side_of(index) as u64;
            to.seat(seat);
        });
        let mut flights: Vec<_> = flights.iter().collect();
        flights.sort_by_key(|flight| (flight.side, flight.unheard, flight.asks.order()));
        self.list(flights, Self::flight);
        let mut notifications: Vec<_> = notifications.iter().collect();
        notifications.sort_by_key(|(side, request, notification)| (*side, request.1, format_of(*notification)));
        self.list(notifications, |to, (side, request, notification)| {
            to.side = *side as u64;
            to.id(request.1);
            to.notification(*notification);
        });
        self.list(subscribed, |to, (side, request)| {
            to.side = *side as u64;
            to.id(request.1);
        });
        self.store(store);
        self.list(cells, Self::cell);
        self.list(evicted, |to, owner| to.owner(*owner));
        let answered = |epoch: u64| {
            let granted = |flight: &Flight| matches!(flight.answer, Some(Answer::Claim(Ok(Attempt::Granted { epoch: Some(of) }))) if of == epoch);
            world.flights.iter().any(granted)
        };
        let may_be_given = |epoch: u64| store.holders.iter().any(|holder| holder.epoch == epoch) || answered(epoch);
        self.list(lost.iter().filter(|(_, epoch)| may_be_given(*epoch)), |to, (member, epoch)| {
            to.put(*member as u64);
            to.epoch(*epoch);
        });
        self.list(sessions.iter().filter(|(epoch, _)| may_be_given(*epoch)), |to, (epoch, session)| {
            to.epoch(*epoch);
            to.put(session.0);
        });
        // What was handed out counts for those who wait, or come, and for what is held.
        let newest = tokens.iter().max();
        self.option(newest, |to, token| {
            to.epoch(token.0);
            to.put(u64::from(token.1));
        });
        let may_come_again = |token: &&(u64, u16)| store.holders.iter().any(|holder| holder.epoch == token.0);
        let mut tokens: Vec<_> = tokens.iter().filter(may_come_again).collect();
        tokens.sort_unstable();
        self.list(tokens, |to, token| {
            to.epoch(token.0);
            to.put(u64::from(token.1));
        });
        self.option(detached_lock.as_ref(), |to, (grant, number)| {
            to.grant(grant);
            to.put(u64::from(*number));
        });
        let in_store = |owner: &&OwnerId| store.holders.iter().any(|holder| holder.owner == **owner);
        self.list(detached.iter().filter(in_store), |to, owner| to.owner(*owner));
        self.list(attached, |to, owner| to.owner(*owner));
        self.list(rests, |to, rest| to.flag(*rest == Some(world.now)));
        self.list(left, |to, left| to.put(u64::from(*left)));
        self.put(u64::from(*most));
        self.flag(*refused);
        self.flag(*faulted);
    }

    fn seat(&mut self, seat: &Seat) {
        let Seat { joins, handle, at } = seat;
        self.put(u64::from(*joins));
        self.put(HANDLE | u64::from(handle.0));
        match at {
            At::Away => self.put(0),
            At::Waiting { id, limit, times_up, offer, called, floor, wants } => {
                self.put(1);
                self.id(id.0);
                self.future(*limit);
                self.flag(*times_up);
                self.flag(*called);
                self.option(offer.as_ref(), |to, offer| to.guard(&offer.guard));
                self.epoch(floor.0);
                self.put(u64::from(floor.1));
                match wants {
                    Wants::Key => self.put(0),
                    Wants::Detached(owner) => {
                        self.put(1);
                        self.owner(*owner);
                    }
                    Wants::Downgrade => self.put(2),
                }
            }
            At::Holding { guard, owner, mode, cell, epoch } => {
                self.put(2);
                self.guard(guard);
                self.owner(*owner);
                self.mode(*mode);
                self.put(CELL | u64::from(*cell));
                self.epoch(*epoch);
            }
        }
    }

    fn flight(&mut self, flight: &Flight) {
        let Flight { side, member, asks, by, answer, unheard } = flight;
        self.side = *side as u64;
        self.count(*member);
        match asks {
            Asks::Store(request) => self.request(request),
            Asks::Force(_, leases) => self.list(leases, |to, lease| to.id(lease.0)),
        }
        self.option(*by, |to, by| to.put(HANDLE | u64::from(by.0)));
        self.option(answer.as_ref(), Self::answer);
        self.flag(*unheard);
    }

    fn request(&mut self, request: &Request) {
        match request {
            Request::Claim(RequestId(_, id), claim) => {
                self.put(20);
                self.id(*id);
                self.asked(claim);
            }
            Request::Downgrade(RequestId(_, id), writer, claim) => {
                self.put(25);
                self.id(*id);
                self.grant(writer);
                self.asked(claim);
            }
            Request::Release(RequestId(_, id), grant) => {
                self.put(21);
                self.id(*id);
                self.grant(grant);
            }
            Request::TakeOver(RequestId(_, id), grant, owner, ttl) => {
                self.put(24);
                self.id(*id);
                self.grant(grant);
                self.owner(*owner);
                self.length(*ttl);
            }
            Request::Renew(Batch { id: BatchId(id), sent_at, leases, keys: _, renewals, within: _ }) => {
                self.put(22);
                self.id(id.get());
                self.past(*sent_at);
                self.list(leases, |to, LeaseId(lease)| to.id(*lease));
                self.list(renewals, |to, Renewal { grant, ttl }| {
                    to.grant(grant);
                    to.length(*ttl);
                });
            }
            Request::Subscribe(RequestId(_, id), _) => {
                self.put(23);
                self.id(*id);
            }
        }
    }

    fn asked(&mut self, claim: &Claim) {
        let Claim { key: _, owner, mode, ttl, waits, label: _, reason: _, lost } = claim;
        self.owner(*owner);
        self.mode(*mode);
        self.length(*ttl);
        self.flag(*waits);
        self.option(*lost, Self::epoch);
    }

    fn answer(&mut self, answer: &Answer) {
        match answer {
            Answer::Claim(attempt) | Answer::TakeOver(attempt) => {
                self.result(attempt.as_ref(), |to, attempt| match *attempt {
                    Attempt::Granted { epoch } => {
                        to.put(1);
                        to.option(epoch, Self::epoch);
                    }
                    Attempt::Busy { retry_in } => {
                        to.put(2);
                        to.option(retry_in, Self::length);
                    }
                    Attempt::HeldBy { session: SessionId(session), retry_in } => {
                        to.put(3);
                        to.put(session);
                        to.option(retry_in, Self::length);
                    }
                    Attempt::Queued { epoch_of_holder, latest_epoch, retry_in, notifies, lease } => {
                        to.put(4);
                        to.option(epoch_of_holder, Self::epoch);
                        to.option(latest_epoch, Self::epoch);
                        to.length(retry_in);
                        to.flag(notifies);
                        to.length(lease);
                    }
                });
            }
            Answer::Release(held) => self.result(held.as_ref(), |to, held| to.held(*held)),
            Answer::Renew(answers) => {
                self.list(answers, |to, held| to.result(held.as_ref(), |to, held| to.held(*held)));
            }
            Answer::Subscribe(begun) => self.flag(*begun),
            Answer::Force => self.put(30),
        }
    }

    fn result<T>(&mut self, result: Result<&T, &Error>, put: impl FnOnce(&mut Self, &T)) {
        match result {
            Ok(value) => put(self, value),
            Err(error) => self.error(error),
        }
    }

    pub(super) fn error(&mut self, error: &Error) {
        self.put(match error.kind() {
            ErrorKind::Unavailable => 40,
            ErrorKind::Indeterminate => 41,
            ErrorKind::Backend => 42,
            ErrorKind::Closed => 43,
            ErrorKind::Lost(_) => 44,
            _ => 45,
        });
    }

    pub(super) fn held(&mut self, held: LeaseStatus) {
        self.put(match held {
            LeaseStatus::Held => 50,
            LeaseStatus::NotHeld => 51,
            LeaseStatus::ForceReleased => 52,
        });
    }

    pub(super) fn notification(&mut self, notification: Notification) {
        match notification {
            Notification::Freed => self.put(60),
            Notification::Ended => self.put(61),
            Notification::Granted { owner, epoch } => {
                self.put(62);
                self.owner(owner);
                self.option(epoch, Self::epoch);
            }
        }
    }

    fn store(&mut self, store: &Store) {
        let Store { holders, queue, keys: _, newest, forced } = store;
        self.list(holders, |to, Holder { key, owner, session, mode, epoch, ends }| {
            to.put(u64::from(*key));
            to.owner(*owner);
            to.option(*session, |to, session| to.put(session.0));
            to.mode(*mode);
            to.epoch(*epoch);
            to.future(*ends);
        });
        self.list(queue, |to, store::QueueEntry { key, owner, mode, lease, until }| {
            to.put(u64::from(*key));
            to.owner(*owner);
            to.mode(*mode);
            to.length(*lease);
            to.future(*until);
        });
        self.epoch(*newest);
        self.list(forced, |to, owner| to.owner(*owner));
    }

    fn cell(&mut self, cell: &CellState) {
        let CellState { side, id, limit, end } = cell;
        self.count(*side);
        self.put(CELL | u64::from(*id));
        self.future(*limit);
        self.option(*end, Self::end);
    }
}

impl Asks {
    fn order(&self) -> (u8, u64) {
        match self {
            Self::Store(Request::Claim(RequestId(_, id), _)) => (0, *id),
            Self::Store(Request::Release(RequestId(_, id), _)) => (1, *id),
            Self::Store(Request::Renew(Batch { id: BatchId(id), .. })) => (2, id.get()),
            Self::Store(Request::Subscribe(RequestId(_, id), _)) => (3, *id),
            Self::Store(Request::TakeOver(RequestId(_, id), ..) | Request::Downgrade(RequestId(_, id), ..)) => (4, *id),
            Self::Force(_, leases) => (5, leases.len() as u64),
        }
    }
}

fn format_of(notification: Notification) -> (u8, u64) {
    match notification {
        Notification::Freed => (0, 0),
        Notification::Ended => (1, 0),
        Notification::Granted { owner, .. } => (2, number_of(owner)),
    }
}
