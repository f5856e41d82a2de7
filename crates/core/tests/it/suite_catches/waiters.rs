//! Waiters that the store knows of, broken.

use std::collections::{HashMap, HashSet};
use std::sync::Mutex;
use std::time::Duration;

use async_trait::async_trait;
use futures::FutureExt;
use leasehold_core::{
    Attempt, Backend, Capabilities, Capability, Claim, Clock, Cursor, GrantRef, Holders, LeaseStatus, LockKey, Mode,
    Moment, OwnerId, Page, Result,
};

use crate::suite_catches::catches;
use crate::suite_catches::double::{Client, Double};

catches! {
    ReadersHaveNoTurn Marks { turns: false, ..Marks::sound() } => c15_writers_do_not_starve_a_waiting_reader,
    KeepsTheMarkOfTheCancelled Marks { lasts: Duration::from_millis(1500), ..Marks::sound() }
        => c15_the_mark_of_a_cancelled_writer_goes_away,
    KeepsThePlaceOfAWriterThatLeft Line { keeps: Some(Mode::Exclusive), ..Line::default() },
    KeepsThePlaceOfAReaderThatLeft Line { keeps: Some(Mode::Shared), ..Line::default() },
}

/// What is told of a claim that has to wait for others who wait.
const BARRED: Attempt = Attempt::Busy { retry_in: Some(Duration::from_millis(50)) };

/// The memory answers at once, so that a step on it and what is known of the waiters are one.
fn at_once<T>(asked: impl Future<Output = T>) -> T {
    asked.now_or_never().unwrap()
}

/// Asks the store, unless only others who wait are in the way.
fn asks_unless(barred: bool, client: &Client, claim: &Claim) -> Result<Attempt> {
    let holders = if barred { at_once(client.store.inspect(&claim.key))?.holders } else { Vec::new() };
    let excludes = |mode: Mode| claim.mode == Mode::Exclusive || mode == Mode::Exclusive;
    let is_free = !holders.iter().any(|holder| excludes(holder.mode));
    if barred && is_free { Ok(BARRED) } else { at_once(client.store.try_acquire(claim)) }
}

/// A waiting writer leaves a mark that holds readers back, and a waiting reader has a turn when a writer has released the key.
pub(crate) struct Marks {
    /// How long a mark lasts: nobody takes it back, so a sound one is short.
    lasts: Duration,
    turns: bool,
    keys: Mutex<HashMap<LockKey, Marked>>,
}

#[derive(Default)]
struct Marked {
    writer_waits: Moment,
    reader_waits: Moment,
    readers_turn: Moment,
    granted: HashSet<OwnerId>,
}

impl Marks {
    pub(crate) fn sound() -> Self {
        Self { lasts: Duration::from_millis(100), turns: true, keys: Mutex::default() }
    }
}

#[async_trait]
impl Double for Marks {
    fn claims(&self, own: Capabilities) -> Capabilities {
        own.with(Capability::WriterIntent)
    }

    async fn try_acquire(&self, client: &Client, claim: &Claim) -> Result<Attempt> {
        let (mut keys, now) = (self.keys.lock().unwrap(), Clock::system().now());
        let key = keys.entry(claim.key.clone()).or_default();
        let (writes, turn) = (claim.mode == Mode::Exclusive, key.readers_turn > now);
        let barred = if writes { turn && claim.waits } else { !turn && key.writer_waits > now };
        let attempt = asks_unless(barred && !key.granted.contains(&claim.owner), client, claim)?;
        match attempt {
            Attempt::Granted { .. } => {
                key.granted.insert(claim.owner);
                key.writer_waits = if writes { Moment::default() } else { key.writer_waits };
            }
            _ if claim.waits && writes && !turn => key.writer_waits = now.plus(self.lasts),
            _ if claim.waits && !writes => key.reader_waits = now.plus(Duration::from_secs(2)),
            _ => {}
        }
        Ok(attempt)
    }

    async fn release(&self, client: &Client, grant: &GrantRef) -> Result<LeaseStatus> {
        let (mut keys, now) = (self.keys.lock().unwrap(), Clock::system().now());
        let held = at_once(client.store.release(grant))?;
        let key = keys.entry(grant.key.clone()).or_default();
        if self.turns && held == LeaseStatus::Held && grant.mode == Mode::Exclusive && key.reader_waits > now {
            key.readers_turn = now.plus(Duration::from_millis(100));
            key.reader_waits = now;
        }
        Ok(held)
    }
}

/// Readers and writers wait in one line, and nobody overtakes a writer. It does not know who holds the key.
#[derive(Default)]
pub(crate) struct Line {
    /// Waiters of this mode keep their place for a while when they leave.
    keeps: Option<Mode>,
    keys: Mutex<HashMap<LockKey, Places>>,
}

#[derive(Default)]
struct Places {
    waiting: Vec<(OwnerId, Mode, Moment)>,
    granted: HashSet<OwnerId>,
}

impl Places {
    fn of(&self, owner: OwnerId) -> Option<usize> {
        self.waiting.iter().position(|(waits, ..)| *waits == owner)
    }

    fn stands_behind(&self, claim: &Claim) -> bool {
        let in_front = &self.waiting[..self.of(claim.owner).unwrap_or(self.waiting.len())];
        in_front.iter().any(|(_, mode, _)| claim.mode == Mode::Exclusive || *mode == Mode::Exclusive)
    }
}

impl Line {
    fn counts(&self, seen: &mut Holders) {
        let (keys, now) = (self.keys.lock().unwrap(), Clock::system().now());
        let waiting =
            keys.get(&seen.key).map_or(0, |key| key.waiting.iter().filter(|(.., until)| *until > now).count());
        seen.waiters = Some(waiting.try_into().unwrap());
    }
}

#[async_trait]
impl Double for Line {
    fn claims(&self, own: Capabilities) -> Capabilities {
        own.with(Capability::Queue)
    }

    async fn try_acquire(&self, client: &Client, claim: &Claim) -> Result<Attempt> {
        let (mut keys, now) = (self.keys.lock().unwrap(), Clock::system().now());
        let key = keys.entry(claim.key.clone()).or_default();
        key.waiting.retain(|(.., until)| *until > now);
        let barred = key.stands_behind(claim) && !key.granted.contains(&claim.owner);
        let attempt = asks_unless(barred, client, claim)?;
        if matches!(attempt, Attempt::Granted { .. }) {
            key.waiting.retain(|(waits, ..)| *waits != claim.owner);
            key.granted.insert(claim.owner);
        }
        if !claim.waits || matches!(attempt, Attempt::Granted { .. } | Attempt::AHEAD_OF_THE_CLOCK) {
            return Ok(attempt);
        }
        let waits = (claim.owner, claim.mode, now.plus(Duration::from_secs(3)));
        match key.of(claim.owner) {
            Some(place) => key.waiting[place] = waits,
            None => key.waiting.push(waits),
        }
        let retry_in = Duration::from_secs(1);
        Ok(Attempt::Queued { epoch_of_holder: None, latest_epoch: None, retry_in, notifies: false, lease: claim.ttl })
    }

    async fn release(&self, client: &Client, grant: &GrantRef) -> Result<LeaseStatus> {
        let mut keys = self.keys.lock().unwrap();
        let key = keys.entry(grant.key.clone()).or_default();
        key.waiting.retain(|(waits, mode, _)| *waits != grant.owner || self.keeps == Some(*mode));
        at_once(client.store.release(grant))
    }

    async fn inspect(&self, client: &Client, key: &LockKey) -> Result<Holders> {
        let mut seen = client.store.inspect(key).await?;
        self.counts(&mut seen);
        Ok(seen)
    }

    async fn list(&self, client: &Client, prefix: &str, after: Option<&Cursor>) -> Result<Page> {
        let mut page = client.store.list(prefix, after).await?;
        for seen in &mut page.keys {
            self.counts(seen);
        }
        Ok(page)
    }
}
