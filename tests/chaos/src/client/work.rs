//! What the tasks of a client do with locks: one op after the other, drawn from the task's seed.

use std::time::Duration;

use leasehold_chaos::history::{Event, Mode};
use leasehold_chaos::register::Answer;
use leasehold_core::{Capabilities, Capability, GuardMode, LockKey, LockOptions, Locker, LockerExt, Locks};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use tokio::time::sleep;

use super::hold::{Held, Wish, attach, downgrade};
use super::recorder::{CANCELLED, Op, Recorder};
use super::resource::Resource;
use crate::wire::{Orders, Reply, Request};

/// Proofs of what a client does to itself.
pub(crate) const CANCELLED_ACQUIRE: &str = "cancelled_acquire";
pub(crate) const ATTACHED: &str = "detach_and_attach";

/// The longest pause between the last look at a guard and the write under it, in milliseconds.
const HESITATES: u64 = 60;

/// What has to be left of a lease for a write without a token.
const ENOUGH: Duration = Duration::from_millis(300);

/// The re-entrant sessions go so deep.
const LEVELS: usize = 3;

/// This task of each client does nothing but wait for one key, and hold it for a moment: somebody always waits for it, so that
/// a lock which is given back and stays in the store keeps the key from everybody.
const RELAY: u32 = 0;

/// So many tasks do little but meet as readers and writers, where there are readers.
const SHARERS: std::ops::Range<u32> = 1..3;

/// One task of a client.
pub(crate) struct Task {
    pub(crate) number: u32,
    pub(crate) orders: Orders,
    pub(crate) locks: Locks,
    pub(crate) recorder: Recorder,
    pub(crate) resource: Resource,
    pub(crate) random: StdRng,
}

impl Task {
    pub(crate) fn new(number: u32, orders: Orders, locks: Locks, recorder: Recorder, resource: Resource) -> Self {
        let seed = orders.seed ^ (u64::from(orders.client) << 16) ^ u64::from(number);
        Self { number, orders, locks, recorder, resource, random: StdRng::seed_from_u64(seed) }
    }

    /// Does one op. What it is depends on chance, and on what the locker can do.
    pub(crate) async fn step(&mut self) {
        let claims = self.locks.capabilities();
        let shares = self.locks.rw().is_some();
        let longest_pause = match self.random.random_range(0..100) {
            _ if self.number == RELAY => {
                self.relay().await;
                5
            }
            0..90 if shares && SHARERS.contains(&self.number) => {
                self.share().await;
                10
            }
            drawn => {
                self.work(drawn, claims).await;
                60
            }
        };
        let pause = self.random.random_range(1..longest_pause);
        sleep(Duration::from_millis(pause)).await;
    }

    async fn work(&mut self, drawn: u32, claims: Capabilities) {
        match drawn {
            25..50 => self.update("register", true).await,
            50..65 => self.update("set", false).await,
            65..75 if claims.has(Capability::Detach) => self.pass_on().await,
            65..80 if self.locks.rw().is_some() => self.share().await,
            65..85 if claims.has(Capability::Reentrancy) => self.reenter().await,
            _ => self.exclude().await,
        }
    }

    /// Two keys of a kind are held for moments. The first one may be held for a good part of a lease, or longer: a client that
    /// is killed or stopped then leaves something behind.
    fn key(&mut self, kind: &str) -> (String, Duration) {
        let number = self.random.random_range(0..3);
        let time = if number == 0 && self.random.random_bool(0.5) {
            self.random.random_range(self.orders.ttl / 5..self.orders.ttl * 2)
        } else {
            self.moment()
        };
        (format!("{kind}/{number}"), time)
    }

    fn moment(&mut self) -> Duration {
        Duration::from_micros(self.random.random_range(200..12_000))
    }

    fn wish<'a>(&mut self, key: &'a str) -> Wish<'a> {
        let wait = match self.random.random_range(0..10) {
            0 | 1 => 0,
            2 => self.random.random_range(1..50),
            _ => self.random.random_range(50..3000),
        };
        let cancelled = self.random.random_bool(0.04).then(|| self.random.random_range(0..20_000));
        Wish {
            key,
            ttl: self.orders.ttl,
            wait: Duration::from_millis(wait),
            cancelled_after: cancelled.map(Duration::from_micros),
            session: self.session(),
        }
    }

    fn session(&self) -> Option<u32> {
        self.locks.capabilities().has(Capability::Reentrancy).then_some(self.number)
    }

    fn begin(&self) -> Op {
        self.recorder.begin(self.number)
    }

    async fn take(&mut self, wish: &Wish<'_>) -> Option<Held> {
        let answer = wish.write(&self.locks, self.begin()).await;
        if answer.as_ref().is_err_and(|why| why == CANCELLED) {
            self.resource.prove(CANCELLED_ACQUIRE).await;
        }
        answer.ok()
    }

    /// Takes a key and holds it for so long. `None`: it was not granted, or lost.
    async fn hold(&mut self, wish: &Wish<'_>, time: Duration) -> Option<Held> {
        let mut held = self.take(wish).await?;
        held.work(time).await.then_some(held)
    }

    async fn finish<M: GuardMode>(&mut self, held: Held<M>) {
        let by_drop = self.random.random_bool(0.15);
        held.give_back(by_drop).await;
    }

    /// Waits for the key that everybody waits for, for longer than several leases, and gives it on at once.
    async fn relay(&mut self) {
        let wait = self.orders.ttl * 4;
        let (wish, time) = (Wish { wait, ..self.wish("relay") }, self.moment());
        if let Some(held) = self.hold(&wish, time).await {
            self.finish(held).await;
        }
    }

    /// Holds a hot key.
    async fn exclude(&mut self) {
        let (key, time) = self.key("mutex");
        let wish = self.wish(&key);
        if let Some(held) = self.hold(&wish, time).await {
            self.finish(held).await;
        }
    }

    /// Reads a register and writes another value, under a lock of the register's name.
    async fn update(&mut self, kind: &str, fenced: bool) {
        let (key, time) = self.key(kind);
        let wish = self.wish(&key);
        let Some(mut held) = self.take(&wish).await else { return };
        let token = held.token().filter(|_| fenced);
        if held.look() {
            self.ask(&held.op, &key, (token, None)).await;
        }
        if held.work(time).await {
            if fenced {
                // Time in which the process may be stopped, so that the write comes from a holder of before.
                let hesitates = self.random.random_range(0..HESITATES);
                sleep(Duration::from_millis(hesitates)).await;
            } else if held.guard.remaining() < ENOUGH {
                // Without a fence, a holder writes only while it has time for it.
                return self.finish(held).await;
            }
            let value = (u64::from(self.orders.client) << 32) | self.recorder.unique();
            self.ask(&held.op, &key, (token, Some(value))).await;
            self.finish(held).await;
        }
    }

    /// Writes to a register, or reads it.
    async fn ask(&mut self, op: &Op, register: &str, (token, writes): (Option<u64>, Option<u64>)) {
        op.log(Event::Asked { register: register.to_owned(), token, writes });
        let answered = self.resource.ask(&Request::Ask { register: register.to_owned(), token, writes }).await;
        let answer = if let Some(Reply::Answer(answer)) = answered { answer } else { Answer::Unknown };
        op.log(Event::Answered { answer });
    }

    /// Reads beside other readers, or writes and goes on as a reader.
    async fn share(&mut self) {
        let (wish, time) = (self.wish("shared"), self.moment() * 3);
        // Writers come to their turn, and stay long enough for readers to come meanwhile.
        let (long_wait, long) = (Wish { wait: self.orders.ttl * 2, ..wish }, time * 5);
        let reader = match self.random.random_range(0..10) {
            0..5 => wish.read(&self.locks, self.begin()).await,
            5..8 => {
                if let Some(held) = self.hold(&long_wait, long).await {
                    self.finish(held).await;
                }
                return;
            }
            _ => match self.hold(&long_wait, long).await {
                Some(held) => downgrade(held, &Wish { cancelled_after: None, ..wish }, self.begin()).await,
                None => return,
            },
        };
        let Ok(mut reader) = reader else { return };
        if reader.work(time).await {
            self.finish(reader).await;
        }
    }

    /// Takes a key again and again before it is given back.
    async fn reenter(&mut self) {
        let key = format!("session/{}", self.random.random_range(0..2));
        let first = self.wish(&key);
        let mut levels = Vec::new();
        for _ in 0..self.random.random_range(1..=LEVELS) {
            let time = self.moment() / 2;
            let wish = Wish { cancelled_after: first.cancelled_after.filter(|_| levels.is_empty()), ..first };
            let Some(mut level) = self.take(&wish).await else { break };
            let goes_on = level.work(time).await;
            levels.push(level);
            if !goes_on {
                break;
            }
        }
        let tokens: Vec<_> = levels.iter().map(Held::token).collect();
        if tokens.windows(2).any(|pair| pair[0] != pair[1]) {
            let text = format!("the levels of one session have the tokens {tokens:?}");
            self.resource.ask(&Request::Complaint { text }).await;
        }
        while let Some(level) = levels.pop() {
            self.finish(level).await;
        }
    }

    /// Leaves a lock to another process, or goes on with the lock of another.
    async fn pass_on(&mut self) {
        let taken = self.resource.ask(&Request::Take { client: self.orders.client }).await;
        if let Some(Reply::Taken { text }) = taken {
            let Ok(mut held) = attach(&text, &self.locks, self.begin(), self.orders.ttl).await else { return };
            self.resource.prove(ATTACHED).await;
            let time = self.moment();
            if held.work(time).await {
                self.finish(held).await;
            }
            return;
        }
        let wish = self.wish("passed on");
        let Some(Held { guard, op, .. }) = self.hold(&wish, Duration::ZERO).await else { return };
        op.log(Event::Detached {});
        if let Ok(detached) = guard.detach() {
            self.resource.ask(&Request::Offer { client: self.orders.client, text: detached.expose() }).await;
        }
    }

    /// Takes keys, and waits for others in tasks that end with the runtime: their ops come second.
    pub(crate) async fn take_until_the_runtime_ends(&mut self) -> (Vec<Held>, Vec<Op>) {
        let (mut held, mut waiting) = (Vec::new(), Vec::new());
        for key in ["runtime/0", "runtime/1"] {
            let wish = Wish { wait: Duration::from_millis(300), cancelled_after: None, ..self.wish(key) };
            held.extend(self.take(&wish).await);
        }
        for key in ["runtime/0", "mutex/0"] {
            let (op, locks) = (self.begin(), self.locks.clone());
            let options = LockOptions::new().ttl(self.orders.ttl);
            op.called(key, Mode::Exclusive, (None, self.session(), false));
            waiting.push(op);
            let key = LockKey::new(key).expect("a valid key");
            tokio::spawn(async move { locks.acquire(&key, &options).await.map(|guard| guard.map(drop)) });
        }
        (held, waiting)
    }
}
