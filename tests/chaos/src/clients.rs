//! The client processes of a run. Each has a slot; when it is killed, another process with another number takes the slot.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use leasehold_testkit::{KilledOnDrop, within};
use rustix::process::{Pid, Signal, kill_process};

use crate::client::CLOCK_MOVED;
use crate::resource::Resource;
use crate::setups::Setup;
use crate::stores::{Library, Shim, Store};
use crate::wire::Orders;

/// How long clients have to end what they do.
const PATIENCE: Duration = Duration::from_secs(30);

const PROCESSES: u32 = 10;

/// What clients complain to.
const COMPLAINTS: &str = "clients.log";

pub(crate) struct Clients {
    /// Of each, but for its number and its URL.
    orders: Orders,
    urls: Vec<String>,
    resource: Resource,
    next: AtomicU32,
    slots: Vec<Mutex<Slot>>,
    /// What ended by itself and should not have.
    failures: Mutex<Vec<String>>,
}

struct Slot {
    number: u32,
    process: Option<KilledOnDrop>,
    shim: Shim,
}

impl Clients {
    pub(crate) fn start(
        (setup, seed): (&Setup, u64),
        store: &Store,
        resource: Resource,
        library: &Library,
    ) -> Result<Self, String> {
        let slot = |number: u32| {
            let shim = library.shim(&format!("client-slot-{number}"))?;
            Ok(Mutex::new(Slot { number: 0, process: None, shim }))
        };
        let slots = (0..PROCESSES).map(slot).collect::<Result<Vec<_>, String>>()?;
        let (setup, ttl, folder) = (setup.name.to_owned(), setup.ttl, library.folder.clone());
        let orders = Orders { setup, url: String::new(), client: 0, seed, resource: resource.port, folder, ttl };
        let (urls, next) = (store.urls.clone(), AtomicU32::new(1));
        let clients = Self { orders, urls, resource, next, slots, failures: Mutex::default() };
        (0..clients.count()).try_for_each(|slot| clients.spawn(slot))?;
        Ok(clients)
    }

    pub(crate) fn count(&self) -> usize {
        self.slots.len()
    }

    /// The slot that this number chooses.
    pub(crate) fn slot(&self, choice: u64) -> usize {
        usize::try_from(choice).unwrap_or(0) % self.slots.len()
    }

    fn lock(&self, slot: usize) -> MutexGuard<'_, Slot> {
        self.slots[slot].lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The number of the process in a slot.
    pub(crate) fn number_in(&self, slot: usize) -> u32 {
        self.lock(slot).number
    }

    /// Where the process in a slot writes what it sees.
    pub(crate) fn history(&self, slot: usize) -> PathBuf {
        self.orders.folder.join(format!("client-{}.jsonl", self.number_in(slot)))
    }

    /// Until each has called something. One that never does has ended, or is found to have no end.
    pub(crate) fn wait_for_their_first_words(&self) {
        let silent = |slot: usize| fs::metadata(self.history(slot)).map_or(true, |file| file.len() == 0);
        let wait = || (0..self.slots.len()).any(silent) && self.are_running();
        within(PATIENCE, Duration::from_millis(10), || (!wait()).then_some(()));
    }

    pub(crate) fn spawn(&self, at: usize) -> Result<(), String> {
        let mut slot = self.lock(at);
        slot.number = self.next.fetch_add(1, Ordering::Relaxed);
        let url = self.urls[at % self.urls.len()].clone();
        let orders = Orders { client: slot.number, url, ..self.orders.clone() };
        let failed = |error: std::io::Error| format!("client {}: {error}", orders.client);
        let words = serde_json::to_string(&orders).map_err(|error| error.to_string())?;
        let log =
            File::options().create(true).append(true).open(self.orders.folder.join(COMPLAINTS)).map_err(failed)?;
        let mut command = Command::new(std::env::current_exe().map_err(failed)?);
        command.args(["--client", &words]).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(log);
        command.envs(slot.shim.variables());
        slot.process = Some(KilledOnDrop::spawn(&mut command).map_err(failed)?);
        Ok(())
    }

    /// Ends the process in a slot with SIGKILL. True: it had not ended by itself.
    pub(crate) fn kill(&self, at: usize) -> Result<bool, String> {
        let mut slot = self.lock(at);
        let number = slot.number;
        let mut process = slot.process.take().ok_or("there is no process")?;
        let ended = process.try_wait().map_err(|error| error.to_string())?;
        if let Some(status) = ended {
            self.failed(format!("client {number} ended by itself: {status}: {}", last_line(&self.orders.folder)));
        }
        process.end();
        Ok(ended.is_none())
    }

    pub(crate) fn signal(&self, at: usize, signal: Signal) -> Result<(), String> {
        let id = self.lock(at).process.as_ref().map(|process| Pid::from_child(process));
        kill_process(id.ok_or("there is no process")?, signal).map_err(|error| error.to_string())
    }

    /// The library in the process in a slot, and in those that take the slot after it.
    pub(crate) fn shim(&self, at: usize) -> Shim {
        self.lock(at).shim.clone()
    }

    /// How many jumps of their wall clocks clients have seen.
    pub(crate) fn jumps_seen(&self) -> u64 {
        self.resource.state().proofs.get(CLOCK_MOVED).copied().unwrap_or(0)
    }

    /// Whether none has ended by itself.
    pub(crate) fn are_running(&self) -> bool {
        (0..self.slots.len())
            .all(|at| self.lock(at).process.as_mut().is_some_and(|one| matches!(one.try_wait(), Ok(None))))
    }

    /// Lets all clients end what they do, and says which of them failed.
    pub(crate) fn stop(&self) -> Vec<String> {
        for at in 0..self.slots.len() {
            if let Some(input) = self.lock(at).process.as_mut().and_then(|process| process.stdin.as_mut()) {
                // It may have ended by itself: that is seen below.
                drop(input.write_all(b"stop\n"));
            }
        }
        let end = Instant::now() + PATIENCE;
        for at in 0..self.slots.len() {
            let number = self.number_in(at);
            if let Some(mut process) = self.lock(at).process.take()
                && let Err(why) = wait(&mut process, end.saturating_duration_since(Instant::now()))
            {
                self.failed(format!("client {number}: {why}: {}", last_line(&self.orders.folder)));
            }
        }
        // A task in the background of a locker that panics ends no process.
        let text = complaints(&self.orders.folder);
        if let Some(first) = text.lines().find(|line| line.contains("panicked at")) {
            let times = text.matches("panicked at").count();
            self.failed(format!("clients panicked {times} times, first: {first}"));
        }
        std::mem::take(&mut *self.failures.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn failed(&self, why: String) {
        self.failures.lock().unwrap_or_else(PoisonError::into_inner).push(why);
    }
}

/// Until it has ended as it should.
fn wait(process: &mut KilledOnDrop, patience: Duration) -> Result<(), String> {
    match within(patience, Duration::from_millis(5), || process.try_wait().transpose()) {
        Some(Ok(status)) if status.success() => Ok(()),
        Some(Ok(status)) => Err(status.to_string()),
        Some(Err(error)) => Err(error.to_string()),
        None => Err("it does not end".to_owned()),
    }
}

/// The last that clients complained of.
fn last_line(folder: &Path) -> String {
    complaints(folder).lines().last().unwrap_or_default().to_owned()
}

/// All that clients complained of.
fn complaints(folder: &Path) -> String {
    fs::read(folder.join(COMPLAINTS)).map_or_else(|_| String::new(), |text| String::from_utf8_lossy(&text).into_owned())
}
