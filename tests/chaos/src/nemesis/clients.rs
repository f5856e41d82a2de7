//! Faults of client processes.

use std::fs;
use std::thread;
use std::time::Duration;

use leasehold_testkit::{Deadline, within};
use rustix::process::Signal;

use super::holders::holds;
use super::scene::Scene;
use super::schedule::Planned;
use crate::fault::Fault;
use crate::stores::{Number, Shim, WRITES_AT_A_PLACE, set_for};

/// How far the wall clock of a client jumps, in milliseconds.
const HOUR: i64 = 3_600_000;
const AN_INSTANT: Duration = Duration::from_millis(100);

/// For how long a client that holds something is looked for, and how long one may take to tell of a jump of its clock.
const LOOKS_FOR: Duration = Duration::from_secs(10);
const TELLS_WITHIN: Duration = Duration::from_secs(5);

/// For how long a client that held something a moment ago is stopped again and again, until it holds something when it is.
const HOLDS_WITHIN: Duration = Duration::from_secs(5);
const BETWEEN: Duration = Duration::from_millis(10);

/// The slot that is hit: of the clients that hold something, if there are any.
pub(super) fn victim(scene: &Scene<'_>, planned: &Planned) -> usize {
    let clients = scene.clients;
    let drawn = clients.slot(planned.choice);
    let all = (0..clients.count()).map(|next| (drawn + next) % clients.count());
    let holder = || all.clone().find(|slot| holds(&clients.history(*slot)));
    within(LOOKS_FOR, BETWEEN, holder).unwrap_or(drawn)
}

pub(super) fn inflict(scene: &Scene<'_>, planned: &Planned, slot: usize) -> Result<u64, String> {
    match planned.fault {
        Fault::KillClient => kill(scene, slot, planned.lasts / 4),
        // So long that most outlast a lease.
        Fault::StopClient => stop(scene, slot, planned.lasts * 2),
        Fault::ClientClockAhead => Ok(jump(scene, slot, HOUR, planned.lasts)),
        Fault::ClientClockBack => Ok(jump(scene, slot, -HOUR, planned.lasts)),
        other => Err(format!("{} hits no client", other.name())),
    }
}

/// Stops a client while it holds something, if it ever does.
fn freeze(scene: &Scene<'_>, slot: usize) -> Result<(), String> {
    let deadline = Deadline::after(HOLDS_WITHIN);
    loop {
        scene.clients.signal(slot, Signal::STOP)?;
        thread::sleep(BETWEEN);
        if holds(&scene.clients.history(slot)) || deadline.is_over() {
            return Ok(());
        }
        scene.clients.signal(slot, Signal::CONT)?;
        thread::sleep(BETWEEN);
    }
}

/// The canary is what its history ends with: it held something.
fn kill(scene: &Scene<'_>, slot: usize, absent: Duration) -> Result<u64, String> {
    let history = scene.clients.history(slot);
    freeze(scene, slot)?;
    let killed = scene.clients.kill(slot)?;
    let held = holds(&history);
    thread::sleep(absent);
    scene.clients.spawn(slot)?;
    Ok(u64::from(killed && held))
}

/// The canary is its history: a process that stands still writes nothing, and this one held something.
fn stop(scene: &Scene<'_>, slot: usize, lasts: Duration) -> Result<u64, String> {
    let history = scene.clients.history(slot);
    let written = || fs::metadata(&history).map_or(0, |file| file.len());
    freeze(scene, slot)?;
    thread::sleep(AN_INSTANT.min(lasts / 4));
    let before = written();
    thread::sleep(lasts * 3 / 4);
    let stood_still = written() == before && holds(&history);
    scene.clients.signal(slot, Signal::CONT)?;
    Ok(u64::from(stood_still))
}

/// The canary is the client, which compares its clocks.
fn jump(scene: &Scene<'_>, slot: usize, ahead_ms: i64, lasts: Duration) -> u64 {
    let (seen, shim) = (|| scene.clients.jumps_seen(), scene.clients.shim(slot));
    let before = seen();
    shim.set(Number::AheadMs, ahead_ms);
    thread::sleep(lasts);
    within(TELLS_WITHIN, BETWEEN, || (seen() > before).then_some(()));
    shim.set(Number::AheadMs, 0);
    thread::sleep(AN_INSTANT);
    seen() - before
}

/// The disk of all clients is full. The canary is the count of the library that fills it.
pub(super) fn fill_their_disk(scene: &Scene<'_>, lasts: Duration) -> u64 {
    let shims: Vec<Shim> = (0..scene.clients.count()).map(|slot| scene.clients.shim(slot)).collect();
    set_for(lasts, &shims, (Number::Full, WRITES_AT_A_PLACE), Number::Refused)
}
