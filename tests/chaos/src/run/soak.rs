//! A long run without faults: what has grown in the client and in the store?

use std::fmt::Write as _;
use std::path::Path;
use std::thread;
use std::time::Duration;

use leasehold_testkit::Deadline;
use serde::Serialize;
use tokio::runtime::{Builder, Runtime};

use super::growth::{Growth, Measure, Work};
use crate::clients::{Clients, Crew};
use crate::resource::Resource;
use crate::setups::Setup;
use crate::stores::{Store, size};
use crate::wire::{Footprint, Soak};

/// What a soak is to do.
const KEYS: u64 = 1_000_000;
const CANCELLED: u64 = 10_000;

/// How long after its work a client may take to end.
const PATIENCE: Duration = Duration::from_secs(120);

/// What a soak found.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Found {
    pub(crate) backend: String,
    pub(crate) keys: u64,
    pub(crate) cancelled: u64,
    pub(crate) growth: Vec<Growth>,
    pub(crate) failures: Vec<String>,
}

impl Found {
    /// Of a soak that came to no end.
    pub(super) fn without_an_end(backend: &str, why: String) -> Self {
        Self { backend: backend.to_owned(), failures: vec![why], ..Self::default() }
    }
}

/// What a client and its store use at one time.
type Counts = [(Measure, u64); 7];

/// Runs it on one setup, for no longer than this.
pub(crate) fn one(setup: &'static Setup, limit: Duration, folder: &Path) -> Result<Found, String> {
    let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().map_err(|e| e.to_string())?;
    let store = (setup.start)(folder, None)?;
    if let Some(repair) = setup.repair {
        runtime.block_on(repair(&store.direct))?;
    }
    let resource = Resource::start().map_err(|error| error.to_string())?;
    let soak = Soak { keys: KEYS, cancelled: CANCELLED, seconds: limit.as_secs() };
    let crew = Crew { setup, seed: 0, folder: folder.to_owned(), processes: 1, tasks: 1, soak: Some(soak) };
    let direct = Store { urls: vec![store.direct.clone()], ..store };
    let clients = Clients::start(crew, &direct, resource.clone(), None)?;
    let deadline = Deadline::after(limit * 2 + PATIENCE);
    let [warm, used, gave_up] = [(); 3].map(|()| look(&resource, (&direct, &clients), &runtime, deadline));
    let mut failures = clients.wait(PATIENCE);
    let (Some(warm), Some(used), Some(gave_up)) = (warm?, used?, gave_up?) else {
        return Err(format!("the client has not told what it used: {failures:?}"));
    };
    let parts = resource.state().footprints.clone();
    let (keys, cancelled) = (parts[1].1, parts[2].2);
    let growth = [grown(&warm, &used, Work::Keys(keys)), grown(&used, &gave_up, Work::Waits(cancelled))].concat();
    for (work, part) in growth.chunks(warm.len()).zip([(&warm, &used), (&used, &gave_up)]) {
        let sessions = sessions(part.1).saturating_sub(sessions(part.0));
        failures.extend(work.iter().filter_map(|growth| growth.judge(setup.stays, sessions).err()));
    }
    Ok(Found { backend: setup.name.to_owned(), keys, cancelled, growth, failures })
}

fn sessions(counts: &Counts) -> u64 {
    counts.iter().find(|(measure, _)| *measure == Measure::Sessions).map_or(0, |(_, count)| *count)
}

fn grown(before: &Counts, after: &Counts, work: Work) -> Vec<Growth> {
    let pairs = before.iter().zip(after);
    pairs
        .map(|((measure, before), (_, after))| Growth { measure: *measure, work, before: *before, after: *after })
        .collect()
}

/// Waits for the next footprint of the client, and looks at the store at that time. `None`: it did not come.
fn look(
    resource: &Resource,
    (store, clients): (&Store, &Clients),
    runtime: &Runtime,
    deadline: Deadline,
) -> Result<Option<Counts>, String> {
    let next = || {
        let state = resource.state();
        state.footprints.get(state.looked).map(|(footprint, ..)| *footprint)
    };
    while next().is_none() && clients.are_running() && !deadline.is_over() {
        thread::sleep(Duration::from_millis(50));
    }
    let Some(Footprint { heap, resident, descriptors, tasks }) = next() else { return Ok(None) };
    let size = size(store, runtime)?;
    resource.state().looked += 1;
    Ok(Some([
        (Measure::Heap, heap),
        (Measure::Resident, resident),
        (Measure::Descriptors, descriptors),
        (Measure::Tasks, tasks),
        (Measure::Entries, size.entries),
        (Measure::Data, size.bytes),
        (Measure::Sessions, size.sessions),
    ]))
}

/// What was found, for people.
pub(crate) fn table(all: &[Found]) -> String {
    let mut text = String::new();
    for found in all {
        let _ = writeln!(text, "{}: {} keys, {} waits given up", found.backend, found.keys, found.cancelled);
        for growth in &found.growth {
            let _ = writeln!(text, "  {growth}");
        }
    }
    text
}
