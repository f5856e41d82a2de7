use super::moves::Fault;
use super::moves::Fault::{
    Break, Close, DropNotification, Force, ForceElsewhere, Forge, Forget, Leave, Lose, Pause, Refuse, RenewNow,
    RepeatNotification, Restart, Twice,
};
use super::moves::Move::{Collect, Drop, Fault as By, Join, RoundTrip};
use super::world::{Config, SeatOf, Waits};
use crate::Mode::{Exclusive, Shared};

const WAITS: SeatOf =
    SeatOf { member: 0, key: 0, mode: Exclusive, waits: Waits::Forever, renew: true, cap: None, joins: 1 };
const READS: SeatOf = SeatOf { mode: Shared, ..WAITS };

const PLAIN: Config = Config {
    name: "plain",
    members: &[(0, None)],
    handoffs: 2,
    keys: 1,
    queues: false,
    notifies: true,
    seats: &[WAITS],
    begins: &[],
    faults: &[],
    most: 0,
    depth: 60,
    states: 160_000,
};

impl Default for &'static Config {
    fn default() -> Self {
        &PLAIN
    }
}

/// One process, whose callers pass the lease on.
pub(super) const EXCLUSIVE: Config = Config {
    name: "one process",
    seats: &[SeatOf { joins: 2, ..WAITS }, WAITS, SeatOf { waits: Waits::Units(2), ..WAITS }],
    faults: &[(Leave, 1), (Lose, 1)],
    most: 2,
    ..PLAIN
};

/// Two processes, with callers that do not wait, or do not renew.
pub(super) const TWO_PROCESSES: Config = Config {
    name: "two processes",
    members: &[(0, None), (1, None)],
    seats: &[
        WAITS,
        SeatOf { renew: false, waits: Waits::Units(3), ..WAITS },
        SeatOf { member: 1, joins: 2, waits: Waits::Never, ..WAITS },
    ],
    faults: &[(Leave, 1), (Lose, 1), (Pause, 1)],
    most: 2,
    ..PLAIN
};

/// A store with a line of its own.
pub(super) const QUEUE: Config = Config {
    name: "a store's queue",
    members: &[(0, None), (1, None)],
    queues: true,
    seats: &[WAITS, SeatOf { renew: false, ..WAITS }, SeatOf { member: 1, ..WAITS }],
    faults: &[(Leave, 1), (Lose, 1), (DropNotification, 1), (RepeatNotification, 1), (Restart, 1)],
    most: 2,
    ..PLAIN
};

/// The same, from where the holder is of another process, and the waiter listens.
pub(super) const QUEUE_TOLD: Config = Config {
    name: "a store's queue that tells",
    begins: &[Join(2), RoundTrip(0), Collect(2), Join(0), RoundTrip(0), RoundTrip(0), RoundTrip(0)],
    ..QUEUE
};

pub(super) const SHARED: Config = Config {
    name: "readers",
    members: &[(0, None), (1, None)],
    seats: &[READS, SeatOf { joins: 2, ..READS }, SeatOf { member: 1, ..READS }, WAITS],
    faults: &[(Leave, 1), (Lose, 1), (Forget, 1)],
    most: 1,
    ..PLAIN
};

pub(super) const SESSIONS: Config = Config {
    name: "sessions",
    members: &[(0, Some(1)), (0, Some(2))],
    notifies: false,
    seats: &[WAITS, SeatOf { joins: 2, ..WAITS }, SeatOf { member: 1, ..WAITS }],
    faults: &[(Leave, 1), (Lose, 1), (Forget, 1), (Refuse, 1)],
    most: 1,
    ..PLAIN
};

/// Two engines of one session in one process, and what is refused for good.
pub(super) const ONE_SESSION: Config = Config {
    name: "two engines of one session",
    members: &[(0, Some(1)), (0, Some(1))],
    notifies: false,
    seats: &[SeatOf { joins: 2, ..WAITS }, SeatOf { member: 1, ..WAITS }],
    faults: &[(Lose, 1), (Forget, 1), (Break, 1), (Pause, 1)],
    most: 2,
    ..PLAIN
};

pub(super) const LOSSY: Config = Config {
    name: "a lossy store",
    members: &[(0, None), (1, None)],
    seats: &[WAITS, WAITS, SeatOf { member: 1, ..WAITS }],
    faults: &[(Lose, 2), (Refuse, 1), (Break, 1), (Forget, 1), (DropNotification, 1)],
    most: 2,
    ..PLAIN
};

pub(super) const ENDS: Config = Config {
    name: "ends by others",
    members: &[(0, None), (1, None)],
    seats: &[SeatOf { cap: Some(2), ..WAITS }, WAITS, SeatOf { member: 1, ..WAITS }],
    faults: &[(Fault::Detach, 1), (Force, 1), (ForceElsewhere, 1), (Close, 1), (RenewNow, 1)],
    most: 2,
    ..PLAIN
};

/// A lock that was detached, and callers of two processes who ask for it.
pub(super) const ATTACHES: Config = Config {
    name: "a detached lock",
    members: &[(0, None), (1, None)],
    seats: &[WAITS, SeatOf { joins: 2, ..WAITS }, SeatOf { member: 1, joins: 2, ..WAITS }],
    begins: &[Join(0), RoundTrip(0), Collect(0), By(Fault::Detach, 0)],
    faults: &[(Fault::Detach, 1), (Lose, 1), (Refuse, 1), (Leave, 1), (Close, 1), (ForceElsewhere, 1), (Pause, 1)],
    most: 3,
    ..PLAIN
};

/// In a store with a line, so that one owner claims more than once.
pub(super) const DETACHED_IN_LINE: Config = Config {
    name: "a detached lock in the store's line",
    queues: true,
    seats: &[WAITS, SeatOf { member: 1, ..WAITS }],
    begins: &[],
    faults: &[(Lose, 1), (Fault::Detach, 1)],
    ..ATTACHES
};

/// Two who ask for it, and nothing goes wrong.
const ATTACHES_IN_PEACE: Config =
    Config { name: "a detached lock in peace", faults: &[(Fault::Detach, 1), (Leave, 1)], most: 2, ..ATTACHES };

/// A writer that goes on as a reader, beside a reader and a writer elsewhere.
pub(super) const DOWNGRADES: Config = Config {
    name: "a writer that goes on as a reader",
    members: &[(0, None), (1, None)],
    seats: &[WAITS, READS, SeatOf { member: 1, ..WAITS }],
    begins: &[Join(0), RoundTrip(0), Collect(0)],
    faults: &[(Fault::Downgrade, 1), (Lose, 1), (Refuse, 1), (Leave, 1), (Close, 1), (ForceElsewhere, 1), (Pause, 1)],
    most: 3,
    ..PLAIN
};

/// Two callers of one process.
const PAIR: Config = Config { name: "a pair", seats: &[WAITS, WAITS], faults: &[(Twice, 1)], most: 1, ..PLAIN };

/// More than the bound of hand-offs allows.
const LINE: Config = Config { name: "a line", handoffs: 1, seats: &[WAITS, WAITS, WAITS], depth: 30, ..PLAIN };

/// Nobody renews, and answers come late.
const ALONE: Config = Config { name: "alone", seats: &[WAITS], faults: &[(Lose, 1)], most: 1, ..PLAIN };

/// A guard that asks for renewals itself.
const RENEWS: Config =
    Config { name: "asks for renewals", seats: &[WAITS], faults: &[(RenewNow, 2)], most: 2, ..PLAIN };

/// Two processes with one caller each.
const RIVALS: Config = Config {
    name: "rivals",
    members: &[(0, None), (1, None)],
    seats: &[WAITS, SeatOf { member: 1, ..WAITS }],
    ..PLAIN
};

const RIVALS_IN_LINE: Config =
    Config { name: "rivals in the store's line", queues: true, faults: &[(Lose, 1), (Forge, 1)], most: 1, ..RIVALS };

/// A reader who comes later, and a store with a line that nobody hears of.
const READERS_IN_LINE: Config = Config {
    name: "readers in the store's line",
    members: &[(0, None), (1, None), (2, None)],
    queues: true,
    notifies: false,
    seats: &[READS, READS, SeatOf { member: 1, ..READS }, SeatOf { member: 2, ..WAITS }],
    begins: &[Join(3), RoundTrip(0), Collect(3), Join(0), RoundTrip(0), Join(2), RoundTrip(0), Drop(3), RoundTrip(0)],
    faults: &[(Pause, 1)],
    most: 1,
    ..PLAIN
};

/// A reader before a writer, in one process.
pub(super) const READER_AND_WRITER: Config =
    Config { name: "a reader and a writer", seats: &[READS, WAITS], faults: &[(Forget, 1)], most: 1, ..PLAIN };

pub(super) const READER_AND_TRY: Config =
    Config { seats: &[READS, SeatOf { waits: Waits::Never, ..WAITS }], ..READER_AND_WRITER };

/// A reader and a writer elsewhere, with a reader who comes later.
const READERS: Config = Config {
    name: "readers who come later",
    members: &[(0, None), (1, None)],
    seats: &[READS, READS, SeatOf { member: 1, ..READS }],
    ..PLAIN
};

/// Two readers who share the grant that was claimed when both waited, and leave.
const READERS_LEAVE: Config = Config {
    name: "readers who leave",
    seats: &[READS, READS, READS],
    begins: &[Join(0), Join(1), Join(2), RoundTrip(0), Collect(0), RoundTrip(0), Collect(1), Collect(2), Drop(0)],
    faults: &[(ForceElsewhere, 1)],
    most: 1,
    ..PLAIN
};

const WISHES: Config = Config {
    name: "different wishes",
    seats: &[WAITS, SeatOf { renew: false, ..WAITS }],
    faults: &[(Leave, 1)],
    most: 1,
    ..PLAIN
};

const FORCED: Config =
    Config { name: "released by force", seats: &[WAITS, WAITS], faults: &[(Force, 1)], most: 1, handoffs: 0, ..PLAIN };

const CLOSED: Config = Config { name: "closed", seats: &[WAITS, WAITS], faults: &[(Close, 1)], most: 1, ..PLAIN };

const SESSION: Config = Config {
    name: "one session",
    members: &[(0, Some(1))],
    notifies: false,
    seats: &[WAITS, SeatOf { cap: Some(1), ..WAITS }],
    faults: &[(Forget, 1), (Lose, 1)],
    most: 1,
    ..PLAIN
};

/// A level of a session whose release is refused for good.
const LEVEL_LEFT: Config = Config {
    name: "a level that is left",
    seats: &[SeatOf { cap: Some(1), ..WAITS }, WAITS],
    faults: &[(Break, 1)],
    ..SESSION
};

/// The smallest situations in which rules of the protocol show.
pub(super) static FEW_CALLERS: [&Config; 15] = [
    &ATTACHES_IN_PEACE,
    &PAIR,
    &LINE,
    &ALONE,
    &RENEWS,
    &RIVALS_IN_LINE,
    &READERS_IN_LINE,
    &READER_AND_WRITER,
    &READERS,
    &READERS_LEAVE,
    &WISHES,
    &FORCED,
    &CLOSED,
    &SESSION,
    &LEVEL_LEFT,
];

/// What random histories are of: more callers who come more often, and more that goes wrong.
pub(super) static HISTORIES: [&Config; 7] =
    [&ONE, &OF_RIVALS, &IN_LINE, &OF_READERS, &OF_SESSIONS, &OF_ONE_SESSION, &OF_ENDS];

const MANY: Config = Config {
    keys: 2,
    members: &[(0, None), (1, None)],
    faults: &[
        (Leave, 12),
        (Lose, 8),
        (Refuse, 4),
        (Break, 2),
        (Pause, 8),
        (DropNotification, 6),
        (RepeatNotification, 6),
        (Forget, 2),
        (RenewNow, 6),
    ],
    most: 24,
    depth: 0,
    states: 0,
    ..PLAIN
};
const OFTEN: SeatOf = SeatOf { joins: 20, ..WAITS };
/// Comes for another key.
const OFTEN_ELSE: SeatOf = SeatOf { key: 1, ..OFTEN };
const HASTY: SeatOf = SeatOf { waits: Waits::Units(2), ..OFTEN };
const TRIES: SeatOf = SeatOf { waits: Waits::Never, ..OFTEN };
const UNRENEWED: SeatOf = SeatOf { renew: false, ..OFTEN };
const READS_OFTEN: SeatOf = SeatOf { mode: Shared, ..OFTEN };

const ONE: Config = Config {
    name: "one process, often",
    members: &[(0, None)],
    seats: &[OFTEN, OFTEN, OFTEN, HASTY, TRIES, OFTEN_ELSE, SeatOf { key: 1, ..HASTY }],
    ..MANY
};

const OF_RIVALS: Config = Config {
    name: "rivals, often",
    seats: &[
        OFTEN,
        OFTEN,
        UNRENEWED,
        SeatOf { member: 1, ..OFTEN },
        SeatOf { member: 1, ..HASTY },
        OFTEN_ELSE,
        SeatOf { member: 1, ..OFTEN_ELSE },
    ],
    ..MANY
};

const IN_LINE: Config = Config { name: "a store's queue, often", queues: true, ..OF_RIVALS };

const OF_READERS: Config = Config {
    name: "readers, often",
    faults: &[
        (Leave, 12),
        (Lose, 8),
        (Refuse, 4),
        (Break, 2),
        (Pause, 8),
        (Forget, 2),
        (RenewNow, 6),
        (Fault::Downgrade, 12),
    ],
    seats: &[
        READS_OFTEN,
        READS_OFTEN,
        OFTEN,
        SeatOf { member: 1, ..READS_OFTEN },
        SeatOf { member: 1, ..HASTY },
        SeatOf { key: 1, ..READS_OFTEN },
        OFTEN_ELSE,
    ],
    ..MANY
};

const OF_SESSIONS: Config = Config {
    name: "sessions, often",
    members: &[(0, Some(1)), (0, Some(2)), (1, Some(3))],
    notifies: false,
    seats: &[
        OFTEN,
        OFTEN,
        TRIES,
        SeatOf { member: 1, ..OFTEN },
        SeatOf { member: 2, ..HASTY },
        OFTEN_ELSE,
        OFTEN_ELSE,
        SeatOf { member: 2, ..OFTEN_ELSE },
    ],
    ..MANY
};

/// A session has three engines, two of them in one process.
const OF_ONE_SESSION: Config = Config {
    name: "one session, often",
    members: &[(0, Some(1)), (0, Some(1)), (1, Some(1)), (1, Some(2))],
    seats: &[
        OFTEN,
        HASTY,
        SeatOf { member: 1, ..OFTEN },
        SeatOf { member: 1, ..TRIES },
        SeatOf { member: 2, ..OFTEN },
        SeatOf { member: 3, ..OFTEN },
        OFTEN_ELSE,
        SeatOf { member: 2, ..OFTEN_ELSE },
    ],
    ..OF_SESSIONS
};

const OF_ENDS: Config = Config {
    name: "ends by others, often",
    seats: &[OFTEN, SeatOf { cap: Some(2), ..OFTEN }, SeatOf { member: 1, ..OFTEN }, OFTEN_ELSE],
    faults: &[(Fault::Detach, 4), (Force, 3), (ForceElsewhere, 3), (Close, 1), (Leave, 8), (Twice, 4), (Pause, 4)],
    ..MANY
};
