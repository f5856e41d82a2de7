//! After the run: every key that was used can be had again.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use leasehold_chaos::history::{Event, History, Log};
use tokio::runtime::Runtime;

use crate::client::{Recorder, Wish};
use crate::locks::Locks;

/// Longer than any lease, also where the clock of the server was set back meanwhile.
const PATIENCE: Duration = Duration::from_secs(15);

/// The client number of the runner.
const RUNNER: u32 = 0;

/// Takes and releases every key that a client has asked for. Answers which could not be had.
pub(crate) fn every_key(
    runtime: &Runtime,
    (locks, ttl): (&Locks, Duration),
    folder: &Path,
) -> Result<Vec<String>, String> {
    let history = History::read(folder).map_err(|error| error.to_string())?;
    let keys: BTreeSet<&String> = history.lines.iter().filter_map(|line| called(&line.record.event)).collect();
    let recorder = &Recorder::new(Log::open(folder, RUNNER).map_err(|error| error.to_string())?);
    let all = keys.into_iter().map(|key| async move {
        let (task, op) = (locks.of_task(), recorder.begin(0));
        let wish = Wish { key, ttl, wait: PATIENCE, cancelled_after: None, session: None };
        match wish.write(&task, op).await {
            Ok(held) => {
                held.give_back(false).await;
                None
            }
            Err(_) => Some(format!("{key} could not be had within {PATIENCE:?} after the run")),
        }
    });
    let had = runtime.block_on(futures::future::join_all(all));
    Ok(had.into_iter().flatten().collect())
}

fn called(event: &Event) -> Option<&String> {
    if let Event::Called { key, .. } = event { Some(key) } else { None }
}
