//! Waiters that the store knows of, broken.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::FutureExt;
use leasehold_core::{
    Attempt, Backend, Capability, Claim, Clock, GrantRef, LeaseStatus, LockKey, Mode, Moment, OwnerId, Result,
};

use crate::suite_catches::catches;
use crate::suite_catches::double::{Client, Double, of_sync};

catches! {
    ReadersHaveNoTurn marks_that(MARK, false) => c15_writers_do_not_starve_a_waiting_reader,
    KeepsTheMarkOfTheCancelled marks_that(15 * MARK, true) => c15_the_mark_of_a_cancelled_writer_goes_away,
    KeepsThePlaceOfAWriterThatLeft line_that_keeps(Some(Mode::Exclusive)),
    KeepsThePlaceOfAReaderThatLeft line_that_keeps(Some(Mode::Shared)),
}

/// What is told of a claim that has to wait for others who wait.
const BARRED: Attempt = Attempt::Busy { retry_in: Some(Duration::from_millis(50)) };

/// The memory answers at once, so that a step on it and what is known of the waiters are one.
fn at_once<T>(asked: impl Future<Output = T>) -> T {
    asked.now_or_never().unwrap()
}

/// Asks the store, unless only others who wait are in the way.
fn asks_unless(barred: bool, client: &Client, claim: &Claim) -> Result<Attempt> {
    let holders = if barred { at_once(client.holders(&claim.key))? } else { Vec::new() };
    let excludes = |mode: Mode| claim.mode == Mode::Exclusive || mode == Mode::Exclusive;
    let is_free = !holders.iter().any(|holder| excludes(holder.mode));
    if barred && is_free { Ok(BARRED) } else { at_once(client.claim(claim)) }
}

/// A waiting writer leaves a mark that holds readers back, and a waiting reader has a turn when a writer has released the key.
struct Marks {
    lasts: Duration,
    turns: bool,
    keys: Mutex<HashMap<LockKey, Marked>>,
}

#[derive(Default)]
struct Marked {
    writer_waits: Moment,
    reader_waits: Moment,
    readers_turn: Moment,
}

/// How long a mark lasts: nobody takes it back, so a sound one is short.
const MARK: Duration = Duration::from_millis(100);

pub(crate) fn marks() -> Double {
    marks_that(MARK, true)
}

fn marks_that(lasts: Duration, turns: bool) -> Double {
    let it = Arc::new(Marks { lasts, turns, keys: Mutex::default() });
    Double {
        capabilities: |own| own.with(Capability::WriterIntent),
        claims: Box::new(of_sync(&it, Marks::claims)),
        releases: Box::new(of_sync(&it, Marks::releases)),
        ..Double::sound()
    }
}

impl Marks {
    fn claims(&self, client: &Client, claim: &Claim) -> Result<Attempt> {
        let (mut keys, now) = (self.keys.lock().unwrap(), Clock::system().now());
        let key = keys.entry(claim.key.clone()).or_default();
        let (writes, turn) = (claim.mode == Mode::Exclusive, key.readers_turn > now);
        let barred = if writes { turn && claim.waits } else { !turn && key.writer_waits > now };
        let attempt = asks_unless(barred && !client.was_granted(claim), client, claim)?;
        match attempt {
            Attempt::Granted { .. } if writes => key.writer_waits = Moment::default(),
            Attempt::Granted { .. } => {}
            _ if claim.waits && writes && !turn => key.writer_waits = now.plus(self.lasts),
            _ if claim.waits && !writes => key.reader_waits = now.plus(Duration::from_secs(2)),
            _ => {}
        }
        Ok(attempt)
    }

    fn releases(&self, client: &Client, grant: &GrantRef) -> Result<LeaseStatus> {
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
struct Line {
    /// Waiters of this mode keep their place for a while when they leave.
    keeps: Option<Mode>,
    keys: Mutex<HashMap<LockKey, Places>>,
}

/// Who waits for a key, in which mode, and until when.
type Places = Vec<(OwnerId, Mode, Moment)>;

pub(crate) fn line() -> Double {
    line_that_keeps(None)
}

fn line_that_keeps(keeps: Option<Mode>) -> Double {
    let it = Arc::new(Line { keeps, keys: Mutex::default() });
    Double {
        capabilities: |own| own.with(Capability::Queue),
        claims: Box::new(of_sync(&it, Line::claims)),
        releases: Box::new(of_sync(&it, Line::releases)),
        ..Double::sound()
    }
}

impl Line {
    fn claims(&self, client: &Client, claim: &Claim) -> Result<Attempt> {
        let (mut keys, now) = (self.keys.lock().unwrap(), Clock::system().now());
        let places = keys.entry(claim.key.clone()).or_default();
        places.retain(|(.., until)| *until > now);
        let place = places.iter().position(|(waits, ..)| *waits == claim.owner);
        let mut in_front = places[..place.unwrap_or(places.len())].iter();
        let barred = in_front.any(|(_, mode, _)| claim.mode == Mode::Exclusive || *mode == Mode::Exclusive);
        let attempt = asks_unless(barred && !client.was_granted(claim), client, claim)?;
        if matches!(attempt, Attempt::Granted { .. }) {
            places.retain(|(waits, ..)| *waits != claim.owner);
        }
        if !claim.waits || matches!(attempt, Attempt::Granted { .. } | Attempt::AHEAD_OF_THE_CLOCK) {
            return Ok(attempt);
        }
        let waits = (claim.owner, claim.mode, now.plus(Duration::from_secs(3)));
        match place {
            Some(place) => places[place] = waits,
            None => places.push(waits),
        }
        let retry_in = Duration::from_secs(1);
        Ok(Attempt::Queued { epoch_of_holder: None, latest_epoch: None, retry_in, notifies: false, lease: claim.ttl })
    }

    fn releases(&self, client: &Client, grant: &GrantRef) -> Result<LeaseStatus> {
        let mut keys = self.keys.lock().unwrap();
        let places = keys.entry(grant.key.clone()).or_default();
        places.retain(|(waits, mode, _)| *waits != grant.owner || self.keeps == Some(*mode));
        at_once(client.store.release(grant))
    }
}
