//! The lines of a history, put together: what each op did, and when each fault was on.

use crate::history::{Event, History, Line, Mode, NEMESIS, Phase, Target, UNKNOWN};
use crate::register::Answer;

/// A moment, and the line that tells of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct At {
    pub(super) at: u64,
    /// Index in [`History::lines`].
    pub(super) line: usize,
}

/// From one acquire to its release.
#[derive(Debug, Default)]
pub(super) struct Op<'h> {
    pub(super) client: u32,
    pub(super) task: u32,
    pub(super) key: &'h str,
    pub(super) mode: Mode,
    pub(super) session: Option<u32>,
    pub(super) attach: bool,
    pub(super) wait_ms: Option<u64>,
    pub(super) called: At,
    pub(super) answered: Option<At>,
    pub(super) grant: Option<Grant>,
    /// The moments at which it was known to be held.
    pub(super) held: Vec<At>,
    /// A loss: how long after the deadline, if it was noticed late by a process that ran.
    pub(super) lost: Option<(At, Option<u64>)>,
    /// A loss of all levels of its session: not by its own limit on the time of holding.
    pub(super) lost_for_all: Option<At>,
    /// The guard said that it is held although it had been lost or detached.
    pub(super) held_after_end: Option<At>,
    pub(super) detached: Option<At>,
    pub(super) release_called: Option<At>,
    /// The release has returned.
    pub(super) released: Option<At>,
    /// The last answer after which the client did not know what the store has.
    pub(super) unknown: Option<At>,
    /// Its requests to registers.
    pub(super) requests: Vec<Request<'h>>,
}

/// What an acquire returned.
#[derive(Clone, Copy, Debug)]
pub(super) struct Grant {
    pub(super) at: At,
    pub(super) token: u64,
    /// How long it lasts at most without a renewal, in nanoseconds.
    pub(super) lease: u64,
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

pub(super) const fn nanos(millis: u64) -> u64 {
    millis.saturating_mul(1_000_000)
}

/// All ops, in the order of client and number, and what is wrong with the lines.
pub(super) fn ops(history: &History) -> (Vec<Op<'_>>, Vec<Contradiction>) {
    let id = |line: &usize| (history.lines[*line].record.client, history.lines[*line].record.op);
    let mut lines: Vec<usize> = (0..history.lines.len()).filter(|line| id(line).0 != NEMESIS).collect();
    lines.sort_by_key(id);
    let mut wrong = Vec::new();
    let ops = lines.chunk_by(|one, other| id(one) == id(other)).filter_map(|lines| op(history, lines, &mut wrong));
    (ops.collect(), wrong)
}

/// A line that contradicts those before it is left out.
fn op<'h>(history: &'h History, lines: &[usize], wrong: &mut Vec<Contradiction>) -> Option<Op<'h>> {
    let Line { file, record, .. } = &history.lines[lines[0]];
    let Event::Called { key, mode, wait_ms, session, attach } = &record.event else {
        wrong.push((lines[0], "an op begins with a call"));
        return None;
    };
    let (client, task, called) = (record.client, record.task, At { at: record.at, line: lines[0] });
    let (mode, wait_ms, session, attach) = (*mode, *wait_ms, *session, *attach);
    let mut op = Op { client, task, key, mode, session, attach, wait_ms, called, ..Op::default() };
    for number in &lines[1..] {
        let line = &history.lines[*number];
        let same = (line.file, line.record.task) == (*file, task);
        let noted = op.note(&line.record.event, At { at: line.record.at, line: *number });
        let noted = if same { noted } else { Err("an op belongs to one task") };
        wrong.extend(noted.err().map(|why| (*number, why)));
    }
    Some(op)
}

impl<'h> Op<'h> {
    fn note(&mut self, event: &'h Event, at: At) -> Result<(), &'static str> {
        match event {
            Event::Called { .. } => Err("an op has one call"),
            Event::Fault { .. } => Err("a client makes no faults"),
            Event::Granted { .. } | Event::Refused { .. } => self.answer(event, at),
            Event::Asked { register, token, writes } => {
                let (token, writes) = (*token, *writes);
                self.requests.push(Request { register, token, writes, called: at, answer: None });
                Ok(())
            }
            Event::Answered { answer } => {
                let request = self.requests.last_mut().filter(|request| request.answer.is_none());
                let request = request.ok_or("a register answers a request once")?;
                request.answer = Some((at, *answer));
                let of_another = match answer {
                    Answer::Wrote { .. } => request.writes.is_none(),
                    Answer::Read { .. } => request.writes.is_some(),
                    Answer::Refused | Answer::Unknown => false,
                };
                if of_another { Err("a read and a write have answers of their own") } else { Ok(()) }
            }
            event => self.hold(event, at),
        }
    }

    fn answer(&mut self, event: &Event, at: At) -> Result<(), &'static str> {
        if self.answered.replace(at).is_some() {
            return Err("a call has one answer");
        }
        match event {
            Event::Granted { token, lease_ms } => {
                self.grant = Some(Grant { at, token: *token, lease: nanos(*lease_ms) });
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
            Event::Held {} => self.was_held(at, at),
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
                if let Some(called) = self.release_called.filter(|_| *ok) {
                    // It said that the lock was held until it was released.
                    self.was_held(called, at);
                }
            }
            _ => self.unknown = Some(at),
        }
        Ok(())
    }

    fn was_held(&mut self, when: At, told: At) {
        self.held.push(when);
        if self.lost.is_some() || self.detached.is_some() {
            self.held_after_end.get_or_insert(told);
        }
    }

    /// The last moment at which it was known to be held.
    pub(super) fn last_held(&self) -> Option<At> {
        self.held.last().copied()
    }

    /// When the client learned that it has the guard no longer, or gave it to another.
    pub(super) fn lost_or_detached(&self) -> Option<At> {
        self.lost.map(|(at, _)| at).or(self.detached)
    }

    /// Granted, and its client neither lost it nor began to give it back.
    pub(super) fn kept(&self) -> bool {
        self.grant.is_some() && self.lost_or_detached().is_none() && self.release_called.is_none()
    }

    /// When the client was done with its guard.
    pub(super) fn over(&self) -> Option<At> {
        self.released.or(self.detached)
    }
}

/// All faults, in the order in which they began.
pub(super) fn faults(history: &History) -> (Vec<Fault<'_>>, Vec<Contradiction>) {
    let (mut faults, mut wrong): (Vec<Fault<'_>>, Vec<Contradiction>) = (Vec::new(), Vec::new());
    for (number, line) in history.lines.iter().enumerate().filter(|(_, line)| line.record.client == NEMESIS) {
        let Event::Fault { fault, target, phase, proved } = &line.record.event else {
            wrong.push((number, "the nemesis takes no locks"));
            continue;
        };
        let at = At { at: line.record.at, line: number };
        if *phase == Phase::Began {
            faults.push(Fault { name: fault, target, began: at, ended: u64::MAX, proved: false });
            continue;
        }
        let is_it = |one: &&mut Fault<'_>| (one.name, one.target, one.ended) == (fault, target, u64::MAX);
        match faults.iter_mut().rfind(is_it) {
            Some(ended) => (ended.ended, ended.proved) = (at.at, *proved > 0),
            None => wrong.push((number, "a fault begins before it ends")),
        }
    }
    (faults, wrong)
}
