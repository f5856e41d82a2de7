//! What the history of a run says.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use leasehold_chaos::checker::{Limits, Terms, check};
use leasehold_chaos::history::History;

use crate::arguments::Plan;
use crate::client::CLOCK_MOVED;
use crate::nemesis::Proofs;
use crate::report::Entry;
use crate::resource::Resource;
use crate::setups::Setup;

/// A busy machine makes single things late, so only what is typical is judged: a lock that frees a key when its lease ends,
/// and not when it is given back, or answers a second after a limit, does so each time.
fn limits(ttl: Duration) -> Limits {
    let ttl_ms = u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX);
    Limits { wait_overshoot_ms: Some(500), hand_over_ms: Some(ttl_ms / 3), stalled_ms: Some(4 * ttl_ms) }
}

/// The fewest grants in a second of a run: fewer show nothing.
const FEWEST_GRANTS: u64 = 2;

/// What a run left behind beside its history, for the verdict.
pub(super) struct Outcome {
    /// What clients have to have done to themselves.
    pub(super) own_faults: Vec<&'static str>,
    pub(super) proofs: Proofs,
    /// What went wrong with the run itself.
    pub(super) failures: Vec<String>,
    pub(super) resource: Resource,
}

pub(super) fn of(setup: &Setup, plan: &Plan, folder: &Path, outcome: Outcome) -> Result<Entry, String> {
    let history = History::read(folder).map_err(|error| error.to_string())?;
    let terms = Terms { allowances: &setup.allowances(), limits: limits(setup.ttl) };
    let verdict = check(&history, &terms);
    let state = outcome.resource.state();
    let mut failures = outcome.failures;
    failures.extend(state.complaints.iter().cloned());
    for (fault, (times, effects)) in &outcome.proofs {
        if *effects == 0 {
            failures.push(format!("{fault} came {times} times and had no effect"));
        }
    }
    for fault in outcome.own_faults.iter().filter(|fault| !state.proofs.contains_key(**fault)) {
        failures.push(format!("{fault} had no effect"));
    }
    if verdict.figures.grants < plan.duration().as_secs() * FEWEST_GRANTS {
        failures.push(format!("{} grants are too few to show anything", verdict.figures.grants));
    }
    if !verdict.broken.is_empty() {
        failures.push(verdict.explain(&history));
    }
    // That clients saw their clocks jump is the canary of two faults, and no fault of its own.
    let of_clients = state.proofs.iter().filter(|(fault, _)| *fault != CLOCK_MOVED);
    let of_clients = of_clients.map(|(fault, times)| (fault.clone(), *times));
    let of_the_nemesis = outcome.proofs.iter().map(|(fault, (_, effects))| ((*fault).to_owned(), *effects));
    let effects: BTreeMap<String, u64> = of_the_nemesis.chain(of_clients).filter(|(_, times)| *times > 0).collect();
    Ok(Entry {
        backend: setup.name.to_owned(),
        seed: plan.seed,
        kinds: effects.len(),
        faults: outcome.proofs.values().map(|(times, _)| times).sum(),
        stale_writes_refused: state.refused_writes,
        figures: verdict.figures,
        failures,
        effects,
    })
}
