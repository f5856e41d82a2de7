//! The lines of a history, put together: what each op did, and when each fault was on.

use super::work::Work;
use crate::history::{Event, History, Line, Mode, NEMESIS, Phase, Target, UNKNOWN};

/// A moment, and the line that tells of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct At {
    pub(super) at: u64,
    /// Index in [`History::lines`].
    pub(super) line: usize,
}

/// From one acquire to its release.
#[derive(Debug)]
pub(super) struct Op<'h> {
    pub(super) client: u32,
    pub(super) key: &'h str,
    pub(super) mode: Mode,
    pub(super) session: Option<u32>,
    pub(super) attach: bool,
    pub(super) wait_ms: Option<u64>,
    pub(super) called: At,
    pub(super) answered: Option<At>,
    pub(super) grant: Option<Grant>,
    /// The last moment at which it was known to be held.
    pub(super) held: Option<At>,
    /// A loss: how long after the deadline, if it was noticed late by a process that ran.
    pub(super) lost: Option<(At, Option<u64>)>,
    /// A loss of all levels of its session: not by its own limit on the time of holding.
    pub(super) lost_for_all: Option<At>,
    /// The guard said that it is held although it had been lost or detached.
    pub(super) held_after_end: Option<At>,
    pub(super) detached: Option<At>,
    /// The release has returned.
    pub(super) released: Option<At>,
    /// The last answer after which the client did not know what the store has.
    pub(super) unknown: Option<At>,
    /// Its requests to registers.
    pub(super) requests: Vec<Request<'h>>,
    pub(super) release_called: Option<At>,
}

/// What an acquire returned.
#[derive(Clone, Copy, Debug)]
pub(super) struct Grant {
    pub(super) at: At,
    pub(super) token: u64,
    pub(super) lease_ms: u64,
}

/// A request to a register.
#[derive(Clone, Copy, Debug)]
pub(super) struct Request<'h> {
    pub(super) register: &'h str,
    pub(super) token: Option<u64>,
    /// The value of a write; `None`: it is a read.
    pub(super) writes: Option<u64>,
    pub(super) called: At,
    /// `None`: the client was killed before.
    pub(super) answer: Option<(At, Answer)>,
}

/// What a register answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    Wrote {
        previous: Option<u64>,
    },
    Read {
        value: Option<u64>,
        fence: Option<u64>,
    },
    Refused,
    /// It may have been carried out, or may still be.
    Unknown,
}

impl Request<'_> {
    /// It may have been carried out, or may still be.
    pub(super) fn unknown(&self) -> bool {
        self.answer.is_none_or(|(_, answer)| answer == Answer::Unknown)
    }

    /// The value of the register that its answer tells of.
    pub(super) fn saw(&self) -> Option<u64> {
        match self.answer?.1 {
            Answer::Wrote { previous } => previous,
            Answer::Read { value, .. } => value,
            Answer::Refused | Answer::Unknown => None,
        }
    }
}

/// A fault that was on from one moment to another.
#[derive(Clone, Debug)]
pub(super) struct Fault<'h> {
    pub(super) name: &'h str,
    pub(super) target: &'h Target,
    pub(super) began: At,
    /// `u64::MAX` where the end of it was not told.
    pub(super) ended: u64,
    pub(super) proved: bool,
}

/// The reason of a loss that ends one level of a session.
const MAX_HOLD: &str = "max_hold";

/// A line that contradicts those before it, and why.
pub(super) type Contradiction = (usize, &'static str);

/// All ops, in the order of client and number, and what is wrong with the lines.
pub(super) fn ops<'h>(history: &'h History, work: &Work) -> (Vec<Op<'h>>, Vec<Contradiction>) {
    let of_clients = (0..history.lines.len()).filter(|line| history.lines[*line].record.client != NEMESIS);
    let mut lines: Vec<usize> = of_clients.collect();
    work.sort(&mut lines, |line| (history.lines[*line].record.client, history.lines[*line].record.op));
    let (mut ops, mut wrong) = (Vec::new(), Vec::new());
    let same = |one: &usize, other: &usize| {
        let [one, other] = [one, other].map(|line| &history.lines[*line].record);
        work.count();
        (one.client, one.op) == (other.client, other.op)
    };
    for lines in lines.chunk_by(same) {
        ops.extend(op(history, lines, &mut wrong));
    }
    (ops, wrong)
}

/// A line that contradicts those before it is left out.
fn op<'h>(history: &'h History, lines: &[usize], wrong: &mut Vec<Contradiction>) -> Option<Op<'h>> {
    let first = &history.lines[lines[0]];
    let Event::Called { key, mode, wait_ms, session, attach } = &first.record.event else {
        wrong.push((lines[0], "an op begins with a call"));
        return None;
    };
    let mut op = Op {
        client: first.record.client,
        key,
        mode: *mode,
        session: *session,
        attach: *attach,
        wait_ms: *wait_ms,
        called: At { at: first.record.at, line: lines[0] },
        answered: None,
        grant: None,
        held: None,
        lost: None,
        lost_for_all: None,
        held_after_end: None,
        detached: None,
        released: None,
        unknown: None,
        requests: Vec::new(),
        release_called: None,
    };
    for number in &lines[1..] {
        let line = &history.lines[*number];
        let same = (line.file, line.record.task) == (first.file, first.record.task);
        let noted = op.note(line, At { at: line.record.at, line: *number });
        let noted = if same { noted } else { Err("an op belongs to one task") };
        wrong.extend(noted.err().map(|why| (*number, why)));
    }
    Some(op)
}

impl<'h> Op<'h> {
    fn note(&mut self, line: &'h Line, at: At) -> Result<(), &'static str> {
        match &line.record.event {
            Event::Called { .. } => Err("an op has one call"),
            Event::Fault { .. } => Err("a client makes no faults"),
            Event::Granted { .. } | Event::Refused { .. } => self.answer(&line.record.event, at),
            Event::WriteCalled { .. } | Event::ReadCalled { .. } => self.request(&line.record.event, at),
            Event::WriteAccepted { previous } => self.register(at, Answer::Wrote { previous: *previous }),
            Event::Read { value, token } => self.register(at, Answer::Read { value: *value, fence: *token }),
            Event::WriteRefused {} | Event::ReadRefused {} => self.register(at, Answer::Refused),
            Event::WriteUnknown {} | Event::ReadUnknown {} => self.register(at, Answer::Unknown),
            event => self.hold(event, at),
        }
    }

    fn answer(&mut self, event: &Event, at: At) -> Result<(), &'static str> {
        if self.answered.replace(at).is_some() {
            return Err("a call has one answer");
        }
        match event {
            Event::Granted { token, lease_ms } => {
                self.grant = Some(Grant { at, token: *token, lease_ms: *lease_ms });
            }
            Event::Refused { error } if error == UNKNOWN => self.unknown = Some(at),
            _ => {}
        }
        Ok(())
    }

    /// What happens to the guard.
    fn hold(&mut self, event: &Event, at: At) -> Result<(), &'static str> {
        if self.grant.is_none() {
            return Err("no guard without a grant");
        }
        if self.release_called.is_some() != matches!(event, Event::Released { .. } | Event::ReleaseFailed { .. }) {
            return Err("a guard is over with its release, and a release is called before it returns");
        }
        match event {
            Event::Held {} => {
                self.held = Some(at);
                let ended = self.lost.map(|(at, _)| at).or(self.detached);
                self.held_after_end = self.held_after_end.or(ended.map(|_| at));
            }
            Event::Lost { reason, deadline_overdue_ms, resumed } => {
                if reason != MAX_HOLD {
                    self.lost_for_all.get_or_insert(at);
                }
                self.lost.get_or_insert((at, deadline_overdue_ms.filter(|_| !resumed)));
            }
            Event::Detached {} => self.detached = Some(at),
            Event::ReleaseCalled {} => self.release_called = Some(at),
            Event::Released { ok } => {
                if self.released.replace(at).is_some() {
                    return Err("a release returns once");
                }
                // It said that the lock was held until it was released.
                let ended = self.lost.map(|(at, _)| at).or(self.detached).filter(|_| *ok);
                self.held_after_end = self.held_after_end.or(ended.map(|_| at));
                self.held = if *ok { self.release_called } else { self.held };
            }
            _ => self.unknown = Some(at),
        }
        Ok(())
    }

    fn request(&mut self, event: &'h Event, called: At) -> Result<(), &'static str> {
        let (register, token, writes) = match event {
            Event::WriteCalled { register, token, value } => (register, *token, Some(*value)),
            Event::ReadCalled { register, token } => (register, *token, None),
            _ => return Err("this is no request"),
        };
        self.requests.push(Request { register, token, writes, called, answer: None });
        Ok(())
    }

    fn register(&mut self, at: At, answer: Answer) -> Result<(), &'static str> {
        let Some(request) = self.requests.last_mut().filter(|request| request.answer.is_none()) else {
            return Err("a register answers a request once");
        };
        let fits = match answer {
            Answer::Wrote { .. } => request.writes.is_some(),
            Answer::Read { .. } => request.writes.is_none(),
            Answer::Refused | Answer::Unknown => true,
        };
        request.answer = Some((at, answer));
        if fits { Ok(()) } else { Err("a read and a write have answers of their own") }
    }

    /// Neither refused, nor lost, nor known to be released.
    pub(super) fn open(&self) -> bool {
        self.answered.is_none() || self.grant.is_some() && self.lost.is_none() && self.over().is_none()
    }

    /// Granted, and its client neither lost it nor began to give it back.
    pub(super) fn kept(&self) -> bool {
        self.grant.is_some() && self.open() && self.release_called.is_none()
    }

    /// When the client was done with its guard.
    pub(super) fn over(&self) -> Option<At> {
        self.released.or(self.detached)
    }
}

/// All faults, in the order in which they began.
pub(super) fn faults<'h>(history: &'h History, work: &Work) -> (Vec<Fault<'h>>, Vec<Contradiction>) {
    let (mut faults, mut wrong): (Vec<Fault<'h>>, Vec<Contradiction>) = (Vec::new(), Vec::new());
    let mut on: Vec<usize> = Vec::new();
    for (number, line) in history.lines.iter().enumerate().filter(|(_, line)| line.record.client == NEMESIS) {
        let Event::Fault { fault, target, phase, proved } = &line.record.event else {
            wrong.push((number, "the nemesis takes no locks"));
            continue;
        };
        let at = At { at: line.record.at, line: number };
        if *phase == Phase::Began {
            on.push(faults.len());
            faults.push(Fault { name: fault, target, began: at, ended: u64::MAX, proved: false });
            continue;
        }
        let began = on.iter().position(|fault_on| {
            work.count();
            faults[*fault_on].name == fault && faults[*fault_on].target == target
        });
        match began {
            Some(began) => {
                let ended = &mut faults[on.remove(began)];
                (ended.ended, ended.proved) = (at.at, *proved > 0);
            }
            None => wrong.push((number, "a fault begins before it ends")),
        }
    }
    (faults, wrong)
}
