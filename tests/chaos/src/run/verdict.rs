//! What the history of a run says.

use std::path::PathBuf;

use leasehold_chaos::checker::{Limits, Terms, check};
use leasehold_chaos::history::History;

use super::downgrades::let_a_writer_in;
use super::outlived::outlived;
use crate::client::CLOCK_MOVED;
use crate::nemesis::Proofs;
use crate::report::Entry;
use crate::resource::Resource;
use crate::setups::Setup;

/// A busy machine makes single things late, so only what is typical is judged: a lock that frees a key when its lease ends,
/// and not when it is given back, or answers a second after a limit, does so each time.
fn limits(ttl_ms: u64) -> Limits {
    Limits {
        take_over_after_lease_ms: None,
        wait_overshoot_ms: None,
        typical_wait_overshoot_ms: Some(500),
        loss_overdue_ms: None,
        hand_over_ms: Some(ttl_ms / 3),
        stalled_ms: Some(4 * ttl_ms),
    }
}

/// What a run left behind, for the verdict.
pub(super) struct Outcome {
    pub(super) folder: PathBuf,
    /// What clients have to have done to themselves.
    pub(super) own_faults: Vec<&'static str>,
    /// The fewest grants from which anything follows.
    pub(super) fewest_grants: u64,
    pub(super) proofs: Proofs,
    /// What went wrong with the run itself.
    pub(super) failures: Vec<String>,
    pub(super) resource: Resource,
}

pub(super) fn of(setup: &Setup, seed: u64, outcome: &Outcome) -> Result<Entry, String> {
    let history = History::read(&outcome.folder).map_err(|error| error.to_string())?;
    let allowances = setup.allowances();
    let terms = Terms { backend: setup.name, allowances: &allowances, limits: limits(setup.ttl_ms) };
    let verdict = check(&history, &terms);
    let state = outcome.resource.state();
    let mut failures = outcome.failures.clone();
    failures.extend(state.complaints.iter().cloned());
    for (fault, (times, effects)) in &outcome.proofs {
        if *effects == 0 {
            failures.push(format!("{fault} came {times} times and had no effect"));
        }
    }
    for fault in outcome.own_faults.iter().filter(|fault| !state.proofs.contains_key(**fault)) {
        failures.push(format!("{fault} had no effect"));
    }
    if verdict.figures.grants < outcome.fewest_grants {
        failures.push(format!("{} grants are too few to show anything", verdict.figures.grants));
    }
    let takes_locks: Vec<&str> = setup.exemptions().filter(|one| one.takes_locks).map(|one| one.fault.name()).collect();
    failures.extend(outlived(&history, &takes_locks));
    failures.extend(let_a_writer_in(&history));
    if !verdict.broken.is_empty() {
        failures.push(verdict.explain(&history));
    }
    let mut effects: std::collections::BTreeMap<String, u64> =
        outcome.proofs.iter().map(|(fault, (_, effects))| ((*fault).to_owned(), *effects)).collect();
    // That clients saw their clocks jump is the canary of two faults, and no fault of its own.
    let of_clients = state.proofs.iter().filter(|(fault, _)| *fault != CLOCK_MOVED);
    effects.extend(of_clients.map(|(fault, times)| (fault.clone(), *times)));
    effects.retain(|_, times| *times > 0);
    let figures = &verdict.figures;
    Ok(Entry {
        backend: setup.name.to_owned(),
        seed,
        faults: outcome.proofs.values().map(|(times, _)| times).sum(),
        kinds: effects.len(),
        grants: figures.grants,
        overlaps: figures.overlaps,
        duplicate_tokens: figures.duplicate_tokens,
        backward_tokens: figures.backward_tokens,
        stale_writes_accepted: figures.stale_writes_accepted,
        stale_writes_refused: state.refused_writes,
        lost_updates: figures.lost_updates,
        unfenced_losses: figures.unfenced_losses,
        takeover_p99_ms: figures.takeover_p99_ms,
        takeover_after_lease_p99_ms: figures.takeover_after_lease_p99_ms,
        wait_overshoot_p99_ms: figures.wait_overshoot_p99_ms,
        loss_overdue_p99_ms: figures.loss_overdue_p99_ms,
        unresolved: figures.unresolved,
        failures,
        excused: figures.excused.clone(),
        effects,
    })
}
