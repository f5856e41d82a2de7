//! A correct lock, its clients and their registers on a clock that is moved by hand: requests are late, answers get lost,
//! clients are stopped and killed. Deterministic by its seed.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use leasehold_chaos::history::{Event, Mode, NEMESIS, Phase, Record, Target, UNKNOWN};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

use crate::parts::{Holder, Lease, MS, Op, Planned, Step, Store, Told};

const TTL: u64 = 200 * MS;
/// After this, a client does not wait for an answer any more.
const PATIENCE: u64 = 50 * MS;

/// What the clients wrote down in a run of so many ops on so many keys.
pub(crate) fn history(seed: u64, ops: usize, keys: usize) -> Vec<Record> {
    let mut world = World::new(seed, keys);
    let mut start = 0;
    for _ in 0..ops {
        start += world.random.random_range(0..40 * MS / keys as u64);
        let key = world.random.random_range(0..keys);
        world.start(start, key);
    }
    world.run();
    // At the end, every key is asked for.
    let end = world.now + 10 * TTL;
    for key in 0..keys {
        world.add(end, Op { wait: None, calm: true, ..Op::exclusive(1, key) });
    }
    world.run();
    world.records.sort_by_key(|record| record.at);
    world.records
}

struct World {
    random: SmallRng,
    now: u64,
    sequence: u64,
    next: BinaryHeap<Reverse<Planned>>,
    /// What the op was waiting for when it sent the request that is carried out now.
    serving: u64,
    ops: Vec<Op>,
    stores: Vec<Store>,
    /// By key, owner and token.
    leases: BTreeMap<(usize, u64, u64), Lease>,
    records: Vec<Record>,
}

impl World {
    fn new(seed: u64, keys: usize) -> Self {
        let (random, stores) = (SmallRng::seed_from_u64(seed), vec![Store::default(); keys]);
        Self {
            random,
            now: 0,
            sequence: 0,
            next: BinaryHeap::new(),
            serving: 0,
            ops: Vec::new(),
            stores,
            leases: BTreeMap::new(),
            records: Vec::new(),
        }
    }

    fn start(&mut self, at: u64, key: usize) {
        let mut op = Op::exclusive(self.random.random_range(1..8), key);
        match self.random.random_range(0..10) {
            0..3 => op.mode = Mode::Shared,
            3..5 => op.session = Some(self.random.random_range(0..2)),
            5 => op.wait = Some(0),
            6 => op.wait = None,
            _ => {}
        }
        op.doomed = self.random.random_bool(0.03);
        if op.doomed {
            // A client of its own: none of a number comes back.
            op.client = u32::try_from(1000 + self.ops.len()).unwrap();
        }
        self.add(at, op);
    }

    fn add(&mut self, at: u64, mut op: Op) {
        let number = self.ops.len();
        let session = op.session.map(|session| u64::from(op.client) << 32 | u64::from(session) << 63);
        op.owner = session.unwrap_or(number as u64);
        self.ops.push(op);
        self.after(at.saturating_sub(self.now), number, Step::Start);
    }

    fn after(&mut self, delay: u64, op: usize, step: Step) {
        self.push(delay, op, self.ops[op].asked, step);
    }

    fn push(&mut self, delay: u64, op: usize, asked: u64, step: Step) {
        self.sequence += 1;
        self.next.push(Reverse(Planned { at: self.now + delay, sequence: self.sequence, op, asked, step }));
    }

    fn way(&mut self) -> u64 {
        self.random.random_range(MS / 10..3 * MS)
    }

    fn note(&mut self, op: usize, event: Event) {
        // A task for each op.
        let task = u32::try_from(op).unwrap();
        self.records.push(Record { at: self.now, client: self.ops[op].client, task, op: op as u64, event });
    }

    fn fault(&mut self, at: u64, fault: &str, client: u32, phase: Phase) {
        let proved = u64::from(phase == Phase::Ended);
        let event = Event::Fault { fault: fault.into(), target: Target::Client(client), phase, proved };
        self.records.push(Record { at, client: NEMESIS, task: 0, op: 0, event });
    }

    fn run(&mut self) {
        while let Some(Reverse(Planned { at, op, asked, step, .. })) = self.next.pop() {
            (self.now, self.serving) = (at, asked);
            match step {
                Step::Claim { sent, until } => self.claim(op, sent, until),
                Step::Renew { sent } => {
                    let held = self.held(op).is_some_and(|holder| {
                        holder.ends = holder.ends.max(at + TTL);
                        true
                    });
                    self.tell(op, Told::Renewed { sent, held });
                }
                Step::Release => self.release(op),
                Step::Request { write, token } => self.request(op, write, token),
                _ if self.ops[op].dead => {}
                Step::Start => self.call(op),
                Step::Told(what) if asked == self.ops[op].asked => self.told(op, &what),
                Step::GiveUp { write } if asked == self.ops[op].asked => self.give_up(op, write),
                Step::Use => self.use_it(op),
                Step::Write { token } => self.write(op, token),
                Step::Told(_) | Step::GiveUp { .. } => {}
            }
        }
    }

    /// Sends a request. It may be late by much, and the answer may be lost.
    fn ask(&mut self, op: usize, step: Step, write: Option<bool>) {
        self.ops[op].asked += 1;
        let late = !self.ops[op].calm && self.random.random_bool(0.02);
        let way = if late { self.random.random_range(0..3 * TTL) } else { self.way() };
        self.after(way, op, step);
        if write.is_some() || late {
            self.after(PATIENCE, op, Step::GiveUp { write });
        }
    }

    fn tell(&mut self, op: usize, what: Told) {
        let late = !self.ops[op].calm && self.random.random_bool(0.02);
        let way = if late { self.random.random_range(0..3 * TTL) } else { self.way() };
        self.push(way, op, self.serving, Step::Told(what));
    }

    fn call(&mut self, op: usize) {
        let (key, mode, session) = (format!("k{}", self.ops[op].key), self.ops[op].mode, self.ops[op].session);
        let (wait, attach) = (self.ops[op].wait, self.ops[op].text.is_some());
        self.note(op, Event::Called { key, mode, wait_ms: wait.map(|wait| wait / MS), session, attach });
        let until = wait.map_or(u64::MAX, |wait| self.now + wait);
        self.ask(op, Step::Claim { sent: self.now, until }, None);
    }

    fn holder(&mut self, op: usize) -> Option<&mut Holder> {
        let (now, of) = (self.now, &self.ops[op]);
        let holders = &mut self.stores[of.key].holders;
        holders.retain(|holder| holder.ends > now);
        holders.iter_mut().find(|holder| holder.owner == of.owner)
    }

    /// The lease that this very op was granted.
    fn held(&mut self, op: usize) -> Option<&mut Holder> {
        let token = self.ops[op].token;
        self.holder(op).filter(|holder| holder.token == token)
    }

    fn claim(&mut self, op: usize, sent: u64, until: u64) {
        let now = self.now;
        let Op { key, mode, owner, text, session, .. } = self.ops[op];
        let exclusive = mode == Mode::Exclusive;
        let level = self.holder(op).filter(|_| session.is_some()).map(|holder| {
            (holder.levels, holder.ends) = (holder.levels + 1, holder.ends.max(now + TTL));
            holder.token
        });
        let store = &mut self.stores[key];
        let detached = |text| store.holders.iter().position(|holder| holder.owner == text);
        let text = text.map(detached);
        let token = match (level, text) {
            (Some(token), _) => Some(token),
            (_, Some(Some(detached))) => {
                let detached = &mut store.holders[detached];
                (detached.owner, detached.ends) = (owner, detached.ends.max(now + TTL));
                Some(detached.token)
            }
            (_, Some(None)) => return self.tell(op, Told::Busy),
            _ if store.holders.iter().any(|holder| exclusive || holder.exclusive) => None,
            _ => {
                store.epoch += 1;
                let token = store.epoch << 6;
                store.holders.push(Holder { owner, exclusive, token, ends: now + TTL, levels: 1 });
                Some(token)
            }
        };
        match token {
            Some(token) => self.tell(op, Told::Granted { token, sent }),
            None if now >= until => self.tell(op, Told::Busy),
            // The client of this lock leaves the waiting to the store.
            None if self.ops[op].dead => {}
            None => {
                let pause = self.random.random_range(5 * MS..40 * MS).min(until - now);
                self.push(pause, op, self.serving, Step::Claim { sent: now + pause, until });
            }
        }
    }

    fn release(&mut self, op: usize) {
        let ok = self.held(op).is_some_and(|holder| {
            holder.levels -= 1;
            true
        });
        self.stores[self.ops[op].key].holders.retain(|holder| holder.levels > 0);
        self.tell(op, Told::Released { ok });
    }

    fn request(&mut self, op: usize, write: Option<u64>, token: Option<u64>) {
        let store = &mut self.stores[self.ops[op].key];
        let register = if token.is_some() { &mut store.fenced } else { &mut store.open };
        let told = match write {
            Some(value) => register.write(token, value).map(Told::Wrote),
            None => register.read(token).map(|read| Told::Read(read.value, read.fence)),
        };
        self.tell(op, told.unwrap_or(Told::Fenced { write: write.is_some() }));
    }

    fn told(&mut self, op: usize, what: &Told) {
        self.ops[op].asked += 1;
        match *what {
            Told::Granted { token, sent } => {
                self.ops[op].token = token;
                let (now, lease) = (self.now, self.lease(op));
                if lease.is_lost(now) {
                    // What it joined stays with the store until it ends there.
                    return self.note(op, Event::Refused { error: UNKNOWN.into() });
                }
                lease.prolong(deadline(sent));
                lease.levels += 1;
                self.note(op, Event::Granted { token, lease_ms: TTL / MS });
            }
            Told::Busy => return self.note(op, Event::Refused { error: "timed_out".into() }),
            Told::Renewed { sent, held } => {
                let (now, lease) = (self.now, self.lease(op));
                if held && !lease.is_lost(now) {
                    lease.prolong(deadline(sent));
                } else {
                    lease.lose();
                }
            }
            Told::Released { ok } => return self.note(op, Event::Released { ok }),
            Told::Wrote(previous) => self.note(op, Event::WriteAccepted { previous }),
            Told::Read(value, token) => {
                self.ops[op].writes = true;
                self.note(op, Event::Read { value, token });
            }
            Told::Fenced { write: true } => self.note(op, Event::WriteRefused {}),
            Told::Fenced { write: false } => self.note(op, Event::ReadRefused {}),
        }
        let pause = self.random.random_range(0..20 * MS);
        self.after(pause, op, Step::Use);
    }

    fn give_up(&mut self, op: usize, write: Option<bool>) {
        self.ops[op].asked += 1;
        let granted = self.ops[op].token > 0;
        let released = self.ops[op].releasing;
        match write {
            Some(true) => self.note(op, Event::WriteUnknown {}),
            Some(false) => self.note(op, Event::ReadUnknown {}),
            None if !granted => return self.note(op, Event::Refused { error: UNKNOWN.into() }),
            None if released => return self.note(op, Event::ReleaseFailed { error: UNKNOWN.into() }),
            None => {}
        }
        self.ops[op].unknown |= write == Some(true);
        self.after(MS, op, Step::Use);
    }

    fn use_it(&mut self, op: usize) {
        let (now, lease) = (self.now, self.lease(op));
        if lease.is_lost(now) {
            let late = now.saturating_sub(lease.deadline);
            let resumed = late > MS;
            return self
                .note(op, Event::Lost { reason: "expired".into(), deadline_overdue_ms: Some(late / MS), resumed });
        }
        self.note(op, Event::Held {});
        let Op { client, token, session, mode, calm, doomed, unknown, .. } = self.ops[op];
        self.ops[op].uses += 1;
        let alone = session.is_none() && mode == Mode::Exclusive;
        if doomed && self.random.random_bool(0.3) {
            self.ops[op].dead = true;
            self.fault(self.now + 1, "sigkill", client, Phase::Began);
            return self.fault(self.now + 2, "sigkill", client, Phase::Ended);
        }
        if std::mem::take(&mut self.ops[op].writes) && !unknown {
            let token = Some(token).filter(|_| self.ops[op].uses.is_multiple_of(2));
            let pause = if self.random.random_bool(0.2) { self.stop(op) } else { 0 };
            return self.after(pause, op, Step::Write { token });
        }
        match self.random.random_range(0..if calm { 1 } else { 20 }) {
            0..5 => {
                self.note(op, Event::ReleaseCalled {});
                self.ops[op].releasing = true;
                self.lease(op).levels -= 1;
                self.ask(op, Step::Release, None);
            }
            5 => {
                let pause = self.stop(op);
                self.after(pause, op, Step::Use);
            }
            6 if alone && !unknown => self.detach(op),
            7..12 if alone && !unknown => {
                let fenced = !self.ops[op].uses.is_multiple_of(2);
                let register = if fenced { "fenced" } else { "open" };
                self.note(
                    op,
                    Event::ReadCalled { register: self.named(op, register), token: Some(token).filter(|_| fenced) },
                );
                self.ask(op, Step::Request { write: None, token: Some(token).filter(|_| fenced) }, Some(false));
            }
            _ => self.ask(op, Step::Renew { sent: self.now }, None),
        }
    }

    fn lease(&mut self, op: usize) -> &mut Lease {
        let Op { key, owner, token, .. } = self.ops[op];
        self.leases.entry((key, owner, token)).or_default()
    }

    /// How long its process stands still.
    fn stop(&mut self, op: usize) -> u64 {
        let (client, length) = (self.ops[op].client, self.random.random_range(2..2 * TTL));
        self.fault(self.now + 1, "sigstop", client, Phase::Began);
        self.fault(self.now + length, "sigstop", client, Phase::Ended);
        length + 1
    }

    fn named(&self, op: usize, register: &str) -> String {
        format!("{register}{}", self.ops[op].key)
    }

    fn write(&mut self, op: usize, token: Option<u64>) {
        self.sequence += 1;
        let (register, value) = (self.named(op, if token.is_some() { "fenced" } else { "open" }), self.sequence);
        self.note(op, Event::WriteCalled { register, token, value });
        self.ask(op, Step::Request { write: Some(value), token }, Some(true));
    }

    /// Two others try to attach it.
    fn detach(&mut self, op: usize) {
        self.note(op, Event::Detached {});
        let Op { key, owner, .. } = self.ops[op];
        for client in 1..3 {
            let at = self.now + self.way();
            self.add(at, Op { text: Some(owner), wait: Some(0), ..Op::exclusive(client, key) });
        }
    }
}

/// Until when a client counts on a lease that it asked for at this moment.
fn deadline(sent: u64) -> u64 {
    sent + TTL * 99 / 100 - 2 * MS
}
