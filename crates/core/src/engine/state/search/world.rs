//! Some engines, their callers, one key of a store, and all that is under way between them.

use std::time::Duration;

use super::super::State;
use super::super::check::LeaseNote;
use super::super::event::{
    End, Granted, GuardRef, GuardRelease, LeaseId, Member, Request, RequestId, Traits, WaiterId,
};
use super::moves::{FAULTS, Fault, Move};
use super::store::{Queue, Store};
use crate::clock::Moment;
use crate::{Attempt, GrantRef, LeaseStatus, LockOptions, Mode, Notification, OwnerId, Result, SessionId};

/// Time passes in steps of this: a quarter of a lease. It is a multiple of the grid that renewals are on.
pub(super) const UNIT: Duration = Duration::from_millis(256);
/// The lease, in units.
pub(super) const TTL: u32 = 4;

pub(super) type Side = usize;

/// How a caller is reached: another for each of its calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Handle(pub(super) u32);

/// What is searched.
#[derive(Debug)]
pub(super) struct Config {
    pub(super) name: &'static str,
    /// In which process each engine is, and for which session.
    pub(super) members: &'static [(Side, Option<u64>)],
    pub(super) handoffs: u16,
    /// How many keys there are.
    pub(super) keys: u8,
    pub(super) queues: bool,
    pub(super) notifies: bool,
    pub(super) seats: &'static [SeatOf],
    /// How it begins, where that is far from nothing.
    pub(super) begins: &'static [Move],
    pub(super) faults: &'static [(Fault, u8)],
    /// All of them together.
    pub(super) most: u8,
    /// How far behaviours are followed.
    pub(super) depth: u16,
    pub(super) states: usize,
}

/// Who comes.
#[derive(Clone, Copy, Debug)]
pub(super) struct SeatOf {
    pub(super) member: usize,
    pub(super) key: u8,
    pub(super) mode: Mode,
    pub(super) waits: Waits,
    pub(super) renew: bool,
    /// In units.
    pub(super) cap: Option<u32>,
    pub(super) joins: u8,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Waits {
    Never,
    Units(u32),
    Forever,
}

#[derive(Clone, Debug, Default)]
pub(super) struct World {
    pub(super) config: &'static Config,
    pub(super) now: Moment,
    pub(super) sides: Vec<State<Handle, LeaseNote>>,
    pub(super) members: Vec<(Side, Member, Option<SessionId>)>,
    pub(super) closed: Vec<bool>,
    pub(super) seats: Vec<Seat>,
    pub(super) flights: Vec<Flight>,
    /// Who released a guard, and waits to hear what became of it.
    pub(super) leaving: Vec<Leaving>,
    pub(super) notifications: Vec<(Side, RequestId, Notification)>,
    pub(super) subscribed: Vec<(Side, RequestId)>,
    pub(super) store: Store,
    pub(super) cells: Vec<CellState>,
    /// Whose grants the store lost, or evicted.
    pub(super) evicted: Vec<OwnerId>,
    /// The epochs that a guard of an engine heard are lost.
    pub(super) lost: Vec<(usize, u64)>,
    /// Which session had a token.
    pub(super) sessions: Vec<(u64, SessionId)>,
    /// Every token that was handed out.
    pub(super) tokens: Vec<Token>,
    /// A lock that was detached, and with which number.
    pub(super) detached_lock: Option<(GrantRef, u16)>,
    /// Whose locks were detached.
    pub(super) detached: Vec<OwnerId>,
    /// Whose locks were detached and are a guard's again.
    pub(super) attached: Vec<OwnerId>,
    /// When each process used up its bound of a key, and others go first.
    pub(super) rests: Vec<Option<Moment>>,
    pub(super) left: [u8; FAULTS],
    pub(super) most: u8,
    /// Something was refused for the moment, and is tried again soon.
    pub(super) refused: bool,
    /// Something went wrong with what was sent: what is left of it may take a lease to go.
    pub(super) faulted: bool,
    /// How many owners and handles there were.
    pub(super) owners: u64,
    pub(super) handles: u32,
    /// How much was done since time passed, when nothing goes wrong any more.
    pub(super) busy: u32,
    /// What happened in the last step.
    pub(super) seen: Vec<&'static str>,
}

pub(super) type Token = (u64, u16);

#[derive(Clone, Debug)]
pub(super) struct Seat {
    pub(super) joins: u8,
    pub(super) handle: Handle,
    pub(super) at: At,
}

#[derive(Clone, Debug)]
pub(super) enum At {
    Away,
    Waiting {
        id: WaiterId,
        limit: Moment,
        times_up: bool,
        offer: Option<Granted<LeaseNote>>,
        /// It was called, and has not answered.
        called: bool,
        floor: Token,
        wants: Wants,
    },
    Holding {
        guard: GuardRef,
        owner: OwnerId,
        mode: Mode,
        cell: u32,
        epoch: u64,
    },
}

/// What a caller that waits asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wants {
    Key,
    /// For the lock that was detached by this owner.
    Detached(OwnerId),
    /// For a reader's guard instead of its writer's.
    Downgrade,
}

#[derive(Clone, Debug)]
pub(super) struct CellState {
    pub(super) side: Side,
    pub(super) id: u32,
    pub(super) limit: Moment,
    pub(super) end: Option<End>,
}

#[derive(Clone, Debug)]
pub(super) struct Leaving {
    pub(super) handle: Handle,
    pub(super) owner: OwnerId,
    pub(super) cell: u32,
    pub(super) ended: GuardRelease,
}

/// A request on its way.
#[derive(Clone, Debug)]
pub(super) struct Flight {
    pub(super) side: Side,
    pub(super) member: usize,
    pub(super) asks: Asks,
    /// Goes on only as this caller polls it.
    pub(super) by: Option<Handle>,
    /// Who released a guard, and hears the answer.
    pub(super) tells: Option<Handle>,
    pub(super) answer: Option<Answer>,
    /// Nobody waits for the answer any more, and the store may carry it out yet.
    pub(super) unheard: bool,
}

#[derive(Clone, Debug)]
pub(super) enum Asks {
    Store(Request),
    /// Of this key, and what was held of it here.
    Force(u8, Vec<LeaseId>),
}

#[derive(Clone, Debug)]
pub(super) enum Answer {
    Claim(Result<Attempt>),
    Release(Result<LeaseStatus>),
    TakeOver(Result<Attempt>),
    Renew(Vec<Result<LeaseStatus>>),
    Subscribe(bool),
    Force,
}

/// What is broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Property {
    /// Two guards believe that they hold the key, of which one excludes the other; or one that the store does not know.
    Exclusion,
    Tokens,
    /// A caller is told something twice, or when it is gone, or is never told.
    Liveness,
    /// Something is kept in the store, or in the state, that nobody wants.
    Left,
    Close,
    /// A guard is given what may not last, or what it must not have.
    Birth,
    /// After the bound of hand-offs others do not get their turn.
    Turns,
    /// A lease ends twice, not at all, or is renewed after its end.
    OneEnd,
    /// The state contradicts itself.
    Structure,
    /// It panicked.
    Panic,
}

#[derive(Clone, Debug)]
pub(super) struct Violation {
    pub(super) property: Property,
    pub(super) what: String,
}

pub(super) type Checked<T = ()> = std::result::Result<T, Violation>;

pub(super) fn broken<T>(property: Property, what: impl Into<String>) -> Checked<T> {
    Err(Violation { property, what: what.into() })
}

pub(super) fn units(count: u32) -> Duration {
    UNIT * count
}

impl World {
    pub(super) fn new(config: &'static Config) -> Self {
        let sides = config.members.iter().map(|(side, _)| side + 1).max().unwrap_or(1);
        let mut world = Self {
            config,
            now: Moment::default().plus(UNIT * 1000),
            sides: (0..sides).map(|_| State::new()).collect(),
            closed: vec![false; config.members.len()],
            store: Store { newest: 1, keys: config.keys, ..Store::default() },
            rests: vec![None; sides * usize::from(config.keys)],
            most: config.most,
            ..Self::default()
        };
        for (side, session) in config.members {
            let session = session.map(SessionId);
            let member = world.sides[*side].add(Traits {
                session,
                reentrant: session.is_some(),
                leased: true,
                queues: config.queues,
                marks: !config.queues,
                notifies: config.notifies,
                answers_within: UNIT,
                batch: 2,
                handoffs: config.handoffs,
                handoff_age: UNIT,
            });
            world.members.push((*side, member, session));
        }
        for (fault, count) in config.faults {
            world.left[*fault as usize] = *count;
        }
        world.seats = config.seats.iter().map(|of| Seat { joins: of.joins, handle: Handle(0), at: At::Away }).collect();
        for step in config.begins {
            world.take(*step).unwrap();
        }
        world
    }

    pub(super) fn may(&self, fault: Fault) -> bool {
        self.most > 0 && self.left[fault as usize] > 0
    }

    pub(super) fn spend(&mut self, fault: Fault) {
        self.left[fault as usize] -= 1;
        self.most -= 1;
    }

    pub(super) fn options(&self, seat: usize) -> LockOptions {
        let of = &self.config.seats[seat];
        let options = LockOptions::new().ttl(units(TTL)).renew(of.renew);
        of.cap.map_or(options.clone(), |cap| options.max_hold(units(cap)))
    }

    pub(super) fn queue(&self, side: Side, key: u8) -> Option<Queue> {
        let notifies =
            self.subscribed.iter().any(|(of, request)| *of == side && self.listens_to(side, *request) == key);
        self.config.queues.then_some(Queue { keeps: units(3), lease: units(3), notifies })
    }

    pub(super) fn cell(&mut self, side: Side, note: &LeaseNote) -> &mut CellState {
        let known = self.cells.iter().position(|cell| cell.id == note.id);
        let index = known.unwrap_or_else(|| {
            self.cells.push(CellState { side, id: note.id, limit: note.first, end: None });
            self.cells.len() - 1
        });
        &mut self.cells[index]
    }

    /// Whether guards on this lease believe that they hold the key.
    pub(super) fn believes(&self, cell: u32) -> bool {
        self.cells.iter().any(|known| known.id == cell && known.end.is_none() && self.now < known.limit)
    }

    pub(super) fn next_handle(&mut self) -> Handle {
        self.handles += 1;
        Handle(self.handles)
    }
}
