//! What the simulator is made of: an op of a client, what it waits for, and a store with its registers.

use leasehold_chaos::history::Mode;
use leasehold_chaos::register::Register;

pub(crate) const MS: u64 = 1_000_000;

#[derive(Clone, Debug)]
#[allow(clippy::struct_excessive_bools, reason = "what may happen to it, each by itself")]
pub(crate) struct Op {
    pub(crate) client: u32,
    pub(crate) key: usize,
    pub(crate) mode: Mode,
    pub(crate) session: Option<u32>,
    /// The text that is attached: the owner that detached it.
    pub(crate) text: Option<u64>,
    pub(crate) wait: Option<u64>,
    /// It works without faults.
    pub(crate) calm: bool,
    /// It is killed at some time.
    pub(crate) doomed: bool,
    pub(crate) dead: bool,
    pub(crate) owner: u64,
    pub(crate) token: u64,
    pub(crate) uses: u32,
    /// What it is waiting for, by number: an answer to what it gave up comes too late.
    pub(crate) asked: u64,
    pub(crate) unknown: bool,
    pub(crate) releasing: bool,
    /// What it read, to be written with a change.
    pub(crate) writes: bool,
}

impl Op {
    pub(crate) fn exclusive(client: u32, key: usize) -> Self {
        let wait = Some(300 * MS);
        let (session, text, owner, token, uses, asked) = (None, None, 0, 0, 0, 0);
        let [calm, doomed, dead, unknown, releasing, writes] = [false; 6];
        Self {
            client,
            key,
            mode: Mode::Exclusive,
            session,
            text,
            wait,
            calm,
            doomed,
            dead,
            owner,
            token,
            uses,
            asked,
            unknown,
            releasing,
            writes,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Step {
    Start,
    // In the store or at a register:
    Claim {
        sent: u64,
        until: u64,
    },
    Renew {
        sent: u64,
    },
    Release,
    Request {
        write: Option<u64>,
        token: Option<u64>,
    },
    // In the client:
    Told(Told),
    GiveUp {
        write: Option<bool>,
    },
    Use,
    /// It was stopped after it had looked whether it still holds the lock.
    Write {
        token: Option<u64>,
    },
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Told {
    Granted { token: u64, sent: u64 },
    Busy,
    Renewed { sent: u64, held: bool },
    Released { ok: bool },
    Wrote(Option<u64>),
    Read(Option<u64>, Option<u64>),
    Fenced { write: bool },
}

/// In the order of time.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Planned {
    pub(crate) at: u64,
    pub(crate) sequence: u64,
    pub(crate) op: usize,
    /// What the op was waiting for when this was sent.
    pub(crate) asked: u64,
    pub(crate) step: Step,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Store {
    pub(crate) epoch: u64,
    pub(crate) holders: Vec<Holder>,
    pub(crate) fenced: Register,
    pub(crate) open: Register,
}

/// What a client knows of a lease of its own: one for all levels of a session.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lease {
    pub(crate) deadline: u64,
    pub(crate) levels: u32,
    /// It ended while a level was there: no level has it from then on, and none joins it.
    lost: bool,
}

impl Lease {
    pub(crate) fn is_lost(&mut self, now: u64) -> bool {
        self.lost |= self.levels > 0 && now > self.deadline;
        self.lost
    }

    pub(crate) fn prolong(&mut self, deadline: u64) {
        self.deadline = self.deadline.max(deadline);
    }

    pub(crate) fn lose(&mut self) {
        self.lost = true;
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Holder {
    pub(crate) owner: u64,
    pub(crate) exclusive: bool,
    pub(crate) token: u64,
    pub(crate) ends: u64,
    pub(crate) levels: u32,
}
