//! One run: a store, its clients, the faults, and the verdict.

mod probe;
mod verdict;

use std::fs;
use std::path::Path;
use std::sync::{Mutex, PoisonError, mpsc};
use std::thread;
use std::time::Instant;

use leasehold_chaos::history::{Log, NEMESIS};
use leasehold_core::{Capability, Locker};
use tokio::runtime::Builder;

use self::verdict::Outcome;
use crate::arguments::Plan;
use crate::client::{ATTACHED, CANCELLED_ACQUIRE, RUNTIME_ENDED};
use crate::clients::Clients;
use crate::fault::TO_CLIENTS;
use crate::nemesis::{Nemesis, Planned, Scene, draw};
use crate::report::{Entry, of_each, table};
use crate::resource::Resource;
use crate::setups::Setup;
use crate::stores::Library;

/// Runs every setup of the plan, one after the other. True: all that is promised held.
pub(crate) fn all(plan: &Plan) -> Result<bool, String> {
    let what = format!("seed {}, {} s", plan.seed, plan.duration().as_secs());
    of_each(plan, (&what, "report.json"), |setup, output| one(setup, plan, output), |entry| &entry.failures, table)
}

/// A run that cannot begin or end is a failure of this setup, and of no other.
fn one(setup: &'static Setup, plan: &Plan, output: &Path) -> Entry {
    let (backend, seed, seconds) = (setup.name, plan.seed, plan.duration().as_secs());
    let without_a_verdict = |why| Entry { backend: backend.to_owned(), seed, failures: vec![why], ..Entry::default() };
    // What an earlier run of this seed left stays.
    let folder = match tempfile::Builder::new().prefix(&format!("{backend}-{seed}-")).tempdir_in(output) {
        Ok(folder) => folder,
        Err(error) => return without_a_verdict(format!("{}: {error}", output.display())),
    };
    let path = folder.path();
    let judged = || play(setup, plan, path).and_then(|outcome| verdict::of(setup, plan, path, outcome));
    // The thread takes a panic with it.
    let judged = thread::scope(|scope| scope.spawn(judged).join());
    let judged = judged.unwrap_or_else(|_| Err("the runner panicked".to_owned()));
    let entry = judged.unwrap_or_else(without_a_verdict);
    if !entry.failures.is_empty() {
        println!("  history, schedule and logs of the servers: {}", folder.keep().display());
        println!("  replay: cargo xtask chaos --seconds {seconds} --seed {seed} {backend}");
    }
    entry
}

fn play(setup: &'static Setup, plan: &Plan, folder: &Path) -> Result<Outcome, String> {
    let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().map_err(|e| e.to_string())?;
    let library = Library::build(folder)?;
    let store = (setup.start)(&library, &setup.kind)?;
    let connect = |url: &str| runtime.block_on(setup.connect(url)).map_err(|error| error.to_string());
    let operator = connect(&store.direct)?;
    let resource = Resource::start().map_err(|error| error.to_string())?;
    let log = Log::open(folder, NEMESIS).map_err(|error| error.to_string())?;
    let lanes = lanes(setup, plan);
    write_down(folder, plan.seed, &lanes)?;
    let clients = Clients::start((setup, plan.seed), &store, resource.clone(), &library)?;
    // A fault that comes before there are clients hits nobody.
    clients.wait_for_their_first_words();
    let started = Instant::now();
    let task = operator.of_task();
    let nemesis = Nemesis {
        scene: Scene { setup, store: &store, clients: &clients, runtime: &runtime, operator: &task },
        log: &log,
        proofs: Mutex::default(),
        broken: Mutex::default(),
    };
    let clients_run = Mutex::new(());
    let (lane_ends, all_lanes) = mpsc::channel::<()>();
    let stopped = thread::scope(|scope| {
        let running = clients_run.lock();
        for lane in &lanes {
            let (nemesis, clients_run, lane_ends) = (&nemesis, &clients_run, lane_ends.clone());
            scope.spawn(move || {
                nemesis.run(started, started + plan.duration(), lane);
                drop(lane_ends);
                // A client ends with the thread that started it.
                drop(clients_run.lock());
            });
        }
        drop(lane_ends);
        // Nothing is ever sent: it returns when no lane is left.
        let _no_lane_is_left = all_lanes.recv();
        thread::sleep((started + plan.duration()).saturating_duration_since(Instant::now()));
        let stopped = clients.stop();
        drop(running);
        stopped
    });
    let mut failures = nemesis.broken.into_inner().unwrap_or_else(PoisonError::into_inner);
    let proofs = nemesis.proofs.into_inner().unwrap_or_else(PoisonError::into_inner);
    failures.extend(stopped);
    failures.extend(probe::every_key(&runtime, (&operator, setup.ttl), folder)?);
    runtime.block_on(operator.close());
    // As a client sees it, and not the operator, who may have another way to the store.
    let client = connect(&store.urls[0])?;
    let attached = client.of_task().capabilities().has(Capability::Detach).then_some(ATTACHED);
    runtime.block_on(client.close());
    // What clients do to themselves in every run.
    let own_faults = [CANCELLED_ACQUIRE, RUNTIME_ENDED].into_iter().chain(attached).collect();
    Ok(Outcome { own_faults, proofs, failures, resource })
}

/// What is done to clients, and beside it what is done to the network and to the store.
fn lanes(setup: &'static Setup, plan: &Plan) -> [Vec<Planned>; 2] {
    let to_store = setup.faults_of_run(plan.seed);
    [draw(plan.seed, plan.duration(), TO_CLIENTS), draw(plan.seed.wrapping_add(1), plan.duration(), &to_store)]
}

fn write_down(folder: &Path, seed: u64, lanes: &[Vec<Planned>]) -> Result<(), String> {
    let mut all: Vec<&Planned> = lanes.iter().flatten().collect();
    all.sort_by_key(|planned| planned.at);
    let in_words: Vec<String> = all.iter().map(|planned| format!("  {planned}")).collect();
    let text = format!("  seed {seed}\n{}\n", in_words.join("\n"));
    print!("{text}");
    fs::write(folder.join("schedule.txt"), text).map_err(|error| error.to_string())
}
