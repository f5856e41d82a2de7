//! What tells one situation from another: ids by their order, moments by how far off they are.
//!
//! Every field is named, so that a new one is not forgotten.

use std::collections::VecDeque;
use std::time::Duration;

use smallvec::SmallVec;

use super::super::check::number_of;
use super::super::event::{Batch, BatchId, GuardRelease, Request, RequestId};
use super::super::waiter::Changes;
use super::store::{Holder, QueueEntry, Store};
use super::world::{Answer, Asks, At, CellState, Flight, Handle, Leaving, Seat, UNIT, Wants, World};
use crate::clock::Moment;
use crate::{
    Attempt, Claim, Error, ErrorKind, GrantRef, LeaseStatus, Mode, Notification, OwnerId, Renewal, Result, SessionId,
};

/// The kinds of numbers of which only the order counts, above the numbers themselves.
const KINDS: u64 = 0xff << 56;
const ID: u64 = 1 << 56;
const OWNER: u64 = 4 << 56;
const EPOCH: u64 = 5 << 56;
const HANDLE: u64 = 6 << 56;
const CELL: u64 = 7 << 56;

pub(super) struct Encoder {
    pub(super) now: Moment,
    side: u64,
    /// Of the key that is encoded.
    pub(super) changes: Changes,
    words: Vec<u64>,
}

/// A number that stands for a situation.
pub(super) fn fingerprint(world: &World) -> u128 {
    let mut encoder = Encoder { now: world.now, side: 0, changes: Changes::default(), words: Vec::with_capacity(512) };
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

pub(super) trait Encode {
    fn encode(&self, to: &mut Encoder);
}

/// The fields of types in their order, each as it is or as what a function makes of it, and behind `;` those that tell nothing.
macro_rules! encoded {
    ($($type:ident $(<$($of:ty),*>)? { $($field:ident $(as $how:path)?),* $(; $($left_out:ident),*)? })*) => {$(
        impl Encode for $type $(<$($of),*>)? {
            fn encode(&self, to: &mut Encoder) {
                let $type { $($field,)* $($($left_out: _,)*)? } = self;
                $(encoded!(@ to $field $($how)?);)*
            }
        }
    )*};
    (@ $to:ident $field:ident) => { $field.encode($to) };
    (@ $to:ident $field:ident $how:path) => { $how(*$field).encode($to) };
}
pub(super) use encoded;

encoded! {
    Claim { owner, mode, ttl, waits, lost as epochs; key, label, reason }
    GrantRef { owner, mode, epoch as epochs; key }
    Renewal { grant, ttl }
    Batch { id, sent_at as Past, leases, renewals; keys, within }
    Store { holders, queue, newest as Epoch, forced, ran_out; keys }
    Holder { key, owner, session, mode, epoch as Epoch, ends }
    QueueEntry { key, owner, mode, lease, until }
    CellState { side, id as Cell, limit, end }
    Leaving { handle, owner, cell as Cell, ended }
}

/// A number of which only the order counts.
pub(super) struct Id(pub(super) u64);
#[derive(Clone, Copy)]
pub(super) struct Epoch(pub(super) u64);
pub(super) struct Cell(pub(super) u32);

pub(super) fn epochs(epoch: Option<u64>) -> Option<Epoch> {
    epoch.map(Epoch)
}

/// A moment that is past; others are those to come.
pub(super) struct Past(pub(super) Moment);

#[allow(clippy::cast_possible_truncation, reason = "a few seconds")]
fn steps(length: Duration) -> u64 {
    length.as_nanos().div_ceil(UNIT.as_nanos()) as u64
}

/// What is one word, and which.
macro_rules! words {
    ($($type:ty: $word:expr;)*) => {$(
        impl Encode for $type {
            fn encode(&self, to: &mut Encoder) {
                let word: fn(&Self, &Encoder) -> u64 = $word;
                to.put(word(self, to));
            }
        }
    )*};
}
pub(super) use words;

words! {
    bool: |flag, _| u64::from(*flag);
    u8: |number, _| u64::from(*number);
    u16: |number, _| u64::from(*number);
    u64: |number, _| *number;
    usize: |number, _| *number as u64;
    Id: |id, to| to.id(id.0);
    RequestId: |id, to| to.id(id.1);
    BatchId: |id, to| to.id(id.0.get());
    OwnerId: |owner, _| OWNER | number_of(*owner);
    Epoch: |epoch, _| EPOCH | epoch.0.min(!KINDS);
    Handle: |handle, _| HANDLE | u64::from(handle.0);
    Cell: |cell, _| CELL | u64::from(cell.0);
    Past: |moment, to| steps(to.now.since(moment.0)).min(6);
    // How many steps of time from now; what is past is past.
    Moment: |moment, to| match *moment {
        Moment::NEVER => 200,
        moment if moment == Moment::default() => 201,
        moment => steps(moment.since(to.now)).min(100),
    };
    Duration: |length, _| steps(*length).min(100);
    Mode: |mode, _| u64::from(*mode == Mode::Shared);
    SessionId: |session, _| session.0;
    GuardRelease: |ended, _| 70 + *ended as u64;
    LeaseStatus: |held, _| 50 + *held as u64;
    Error: |error, _| match error.kind() {
        ErrorKind::Unavailable => 40,
        ErrorKind::Indeterminate => 41,
        ErrorKind::Backend => 42,
        ErrorKind::Closed => 43,
        ErrorKind::Lost(_) => 44,
        _ => 45,
    };
}

impl<T: Encode> Encode for &T {
    fn encode(&self, to: &mut Encoder) {
        (*self).encode(to);
    }
}

impl<A: Encode, B: Encode> Encode for (A, B) {
    fn encode(&self, to: &mut Encoder) {
        self.0.encode(to);
        self.1.encode(to);
    }
}

impl<T: Encode> Encode for Option<T> {
    fn encode(&self, to: &mut Encoder) {
        match self {
            None => to.put(9),
            Some(value) => (10_u64, value).encode(to),
        }
    }
}

impl<T: Encode> Encode for Result<T> {
    fn encode(&self, to: &mut Encoder) {
        match self {
            Ok(value) => value.encode(to),
            Err(error) => error.encode(to),
        }
    }
}

impl<T: Encode> Encode for Vec<T> {
    fn encode(&self, to: &mut Encoder) {
        to.list(self);
    }
}

impl<T: Encode> Encode for VecDeque<T> {
    fn encode(&self, to: &mut Encoder) {
        to.list(self);
    }
}

impl<T: Encode> Encode for SmallVec<[T; 1]> {
    fn encode(&self, to: &mut Encoder) {
        to.list(self);
    }
}

impl Encoder {
    pub(super) fn put(&mut self, word: u64) {
        self.words.push(word);
    }

    pub(super) fn id(&self, id: u64) -> u64 {
        (ID * (1 + self.side)) | id
    }

    pub(super) fn all(&mut self, fields: &[&dyn Encode]) {
        fields.iter().for_each(|field| field.encode(self));
    }

    pub(super) fn list<T: Encode>(&mut self, list: impl IntoIterator<Item = T>) {
        self.list_of(list, |to, value| value.encode(to));
    }

    pub(super) fn list_of<T>(&mut self, list: impl IntoIterator<Item = T>, mut put: impl FnMut(&mut Self, T)) {
        let at = self.words.len();
        self.put(0);
        let mut count = 0;
        for value in list {
            put(self, value);
            count += 1;
        }
        self.words[at] = count;
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
            leaving,
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
            owners: _,
            handles: _,
            busy: _,
            seen: _,
        } = world;
        self.list_of(sides.iter().enumerate(), |to, (side, state)| {
            to.side = side as u64;
            state.encode(to);
        });
        closed.encode(self);
        self.list_of(seats.iter().enumerate(), |to, (index, seat)| {
            to.side = world.side_of(index) as u64;
            seat.encode(to);
        });
        let mut flights: Vec<_> = flights.iter().collect();
        flights.sort_by_key(|flight| (flight.side, flight.unheard, flight.asks.order()));
        flights.encode(self);
        let mut notifications: Vec<_> = notifications.iter().collect();
        notifications.sort_by_key(|(side, request, notification)| (*side, request.1, format_of(*notification)));
        self.list_of(notifications, |to, (side, request, notification)| {
            to.side = *side as u64;
            to.all(&[request, notification]);
        });
        self.list_of(subscribed, |to, (side, request)| {
            to.side = *side as u64;
            request.encode(to);
        });
        self.all(&[store, cells, evicted, leaving]);
        let answered = |epoch: u64| {
            let granted = |flight: &Flight| matches!(flight.answer, Some(Answer::Claim(Ok(Attempt::Granted { epoch: Some(of) }))) if of == epoch);
            world.flights.iter().any(granted)
        };
        let may_be_given = |epoch: u64| store.holders.iter().any(|holder| holder.epoch == epoch) || answered(epoch);
        let lost = lost.iter().filter(|(_, epoch)| may_be_given(*epoch));
        self.list(lost.map(|(member, epoch)| (*member, Epoch(*epoch))));
        let sessions = sessions.iter().filter(|(epoch, _)| may_be_given(*epoch));
        self.list(sessions.map(|(epoch, session)| (Epoch(*epoch), *session)));
        // What was handed out counts for those who wait, or come, and for what is held.
        let token = |token: &(u64, u16)| (Epoch(token.0), token.1);
        tokens.iter().max().map(token).encode(self);
        let may_come_again = |token: &&(u64, u16)| store.holders.iter().any(|holder| holder.epoch == token.0);
        let mut tokens: Vec<_> = tokens.iter().filter(may_come_again).collect();
        tokens.sort_unstable();
        self.list(tokens.into_iter().map(token));
        detached_lock.encode(self);
        let in_store = |owner: &&OwnerId| store.holders.iter().any(|holder| holder.owner == **owner);
        self.list(detached.iter().filter(in_store));
        attached.encode(self);
        self.list(rests.iter().map(|rest| *rest == Some(world.now)));
        self.list(left);
        self.all(&[most, refused, faulted]);
    }
}

impl Encode for Seat {
    fn encode(&self, to: &mut Encoder) {
        let Self { joins, handle, at } = self;
        to.all(&[joins, handle]);
        match at {
            At::Away => to.put(0),
            At::Waiting { id, limit, times_up, offer, called, floor, wants } => {
                let offered = offer.as_ref().map(|offer| &offer.guard);
                to.all(&[&1_u64, id, limit, times_up, called, &offered, &Epoch(floor.0), &floor.1]);
                match wants {
                    Wants::Key => to.put(0),
                    Wants::Detached(owner) => (1_u64, owner).encode(to),
                    Wants::Downgrade => to.put(2),
                }
            }
            At::Holding { guard, owner, mode, cell, epoch } => {
                to.all(&[&2_u64, guard, owner, mode, &Cell(*cell), &Epoch(*epoch)]);
            }
        }
    }
}

impl Encode for Flight {
    fn encode(&self, to: &mut Encoder) {
        let Self { side, member, asks, by, tells, answer, unheard } = self;
        to.side = *side as u64;
        member.encode(to);
        match asks {
            Asks::Store(request) => request.encode(to),
            Asks::Force(_, leases) => leases.encode(to),
        }
        to.all(&[by, tells, answer, unheard]);
    }
}

impl Encode for Request {
    fn encode(&self, to: &mut Encoder) {
        match self {
            Self::Claim(id, claim) => to.all(&[&20_u64, id, claim]),
            Self::Release(id, grant) => to.all(&[&21_u64, id, grant]),
            Self::Renew(batch) => to.all(&[&22_u64, batch]),
            Self::Subscribe(id, _) => to.all(&[&23_u64, id]),
            Self::TakeOver(id, grant, owner, ttl) => to.all(&[&24_u64, id, grant, owner, ttl]),
            Self::Downgrade(id, writer, claim) => to.all(&[&25_u64, id, writer, claim]),
        }
    }
}

impl Encode for Answer {
    fn encode(&self, to: &mut Encoder) {
        match self {
            Self::Claim(attempt) | Self::TakeOver(attempt) => attempt.encode(to),
            Self::Release(held) => held.encode(to),
            Self::Renew(answers) => answers.encode(to),
            Self::Subscribe(begun) => begun.encode(to),
            Self::Force => to.put(30),
        }
    }
}

impl Encode for Attempt {
    fn encode(&self, to: &mut Encoder) {
        match self {
            Self::Granted { epoch } => to.all(&[&1_u64, &epochs(*epoch)]),
            Self::Busy { retry_in } => to.all(&[&2_u64, retry_in]),
            Self::HeldBy { session, retry_in } => to.all(&[&3_u64, session, retry_in]),
            Self::Queued { epoch_of_holder, latest_epoch, retry_in, notifies, lease } => {
                to.all(&[&4_u64, &epochs(*epoch_of_holder), &epochs(*latest_epoch), retry_in, notifies, lease]);
            }
        }
    }
}

impl Encode for Notification {
    fn encode(&self, to: &mut Encoder) {
        match self {
            Self::Freed => to.put(60),
            Self::Ended => to.put(61),
            Self::Granted { owner, epoch } => to.all(&[&62_u64, owner, &epochs(*epoch)]),
        }
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
