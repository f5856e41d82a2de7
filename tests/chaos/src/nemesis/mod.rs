//! What breaks clients, network and servers, and shows that it did.

mod clients;
mod databases;
mod etcd;
mod holders;
mod links;
mod scene;
mod schedule;
mod servers;
mod topologies;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use leasehold_chaos::history::{Event, Log, Phase, Target, now};
use leasehold_core::LockKey;
use leasehold_testkit::within;

use self::scene::key;
use crate::fault::{Fault, Hits};
use crate::stores::LOCKS;

pub(crate) use self::scene::Scene;
pub(crate) use self::schedule::{Planned, draw};

/// Where lock files are, in the directory of the file locks.
const NAMESPACE: &str = "leasehold";

/// A fault that meets nobody is tried again: clients may still be on their way back from the one before.
const TRIES: u64 = 3;

/// How often a fault came, and how often it was seen to have an effect.
pub(crate) type Proofs = BTreeMap<&'static str, (u64, u64)>;

/// Carries out faults, and writes down what they did.
pub(crate) struct Nemesis<'r> {
    pub(crate) scene: Scene<'r>,
    pub(crate) log: &'r Log,
    pub(crate) proofs: Mutex<Proofs>,
    /// What went wrong with a fault itself: then the run shows nothing.
    pub(crate) broken: Mutex<Vec<String>>,
}

impl Nemesis<'_> {
    /// Carries out these faults, at their times, or later where the one before took long, and none after this moment.
    pub(crate) fn run(&self, started: Instant, end: Instant, schedule: &[Planned]) {
        for planned in schedule {
            thread::sleep((started + planned.at).saturating_duration_since(Instant::now()));
            if Instant::now() > end {
                return;
            }
            // At the next server, client or key.
            let tries = (0..TRIES).map(|after| Planned { choice: planned.choice + after, ..*planned });
            let _proved = tries.into_iter().any(|planned| self.inflict(&planned) > 0);
        }
    }

    /// How often it had an effect.
    fn inflict(&self, planned: &Planned) -> u64 {
        let (name, hits) = (planned.fault.name(), planned.fault.hits());
        let slot = if hits == Hits::Client { clients::victim(&self.scene, planned) } else { 0 };
        let target = self.target(planned, slot);
        self.note(name, &target, Phase::Began, 0);
        let outcome = match hits {
            Hits::Client => clients::inflict(&self.scene, planned, slot),
            Hits::Link => Ok(links::inflict(&self.scene, planned)),
            Hits::Server if self.scene.store.nodes.is_empty() => {
                Ok(clients::fill_their_disk(&self.scene, planned.lasts))
            }
            Hits::Server | Hits::Leader | Hits::Agent => servers::inflict(&self.scene, planned),
            Hits::Key if planned.fault == Fault::RemoveLockFile => self.remove_lock_file(planned),
            Hits::Key => self.force(planned),
        };
        let proved = outcome.unwrap_or_else(|why| {
            self.broken.lock().unwrap_or_else(PoisonError::into_inner).push(format!("{name}: {why}"));
            0
        });
        self.note(name, &target, Phase::Ended, proved);
        let mut proofs = self.proofs.lock().unwrap_or_else(PoisonError::into_inner);
        let (times, effects) = proofs.entry(name).or_default();
        (*times, *effects) = (*times + 1, *effects + proved);
        proved
    }

    fn note(&self, fault: &str, target: &Target, phase: Phase, proved: u64) {
        let event = Event::Fault { fault: fault.to_owned(), target: target.clone(), phase, proved };
        let written = self.log.write(now(), 0, 0, event);
        written.unwrap_or_else(|error| panic!("the history cannot be written: {error}"));
    }

    fn target(&self, planned: &Planned, slot: usize) -> Target {
        match planned.fault.hits() {
            Hits::Client => Target::Client(self.scene.clients.number_in(slot)),
            Hits::Server if self.scene.store.nodes.is_empty() => Target::Server(LOCKS.to_owned()),
            Hits::Leader => Target::Server("leader".to_owned()),
            Hits::Agent => Target::Server(self.scene.agent(planned).map_or_else(|why| why, |agent| agent.name.clone())),
            Hits::Link => Target::Link(self.scene.node(planned).name.clone()),
            Hits::Server => Target::Server(self.scene.node(planned).name.clone()),
            Hits::Key => Target::Key(key(planned).to_owned()),
        }
    }

    /// Somebody removes a file that must not be removed while it is used.
    fn remove_lock_file(&self, planned: &Planned) -> Result<u64, String> {
        let directory = self.scene.store.direct.trim_start_matches("file:");
        // Only the slash of a hot key needs another spelling.
        let file = format!("{}.lock", key(planned).replace('/', "%2F"));
        let removed = fs::remove_file(Path::new(directory).join(NAMESPACE).join(file));
        removed.map(|()| 1).map_err(|error| error.to_string())
    }

    /// Releases a key by force, again and again until it was held.
    fn force(&self, planned: &Planned) -> Result<u64, String> {
        let key = LockKey::new(key(planned)).map_err(|error| error.to_string())?;
        // A client's fault may keep the key from being held, and the store from answering.
        let freed = within(planned.lasts + Duration::from_secs(5), Duration::from_millis(3), || {
            let freed = self.scene.runtime.block_on(self.scene.operator.force_release(&key));
            freed.ok().map(|freed| freed.holders.len() as u64).filter(|freed| *freed > 0)
        });
        Ok(freed.unwrap_or(0))
    }
}
