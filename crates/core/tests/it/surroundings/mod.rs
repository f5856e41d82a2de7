//! The engine among what surrounds it: runtimes that rest or are not there, wakers and subscribers that own guards, crowds.

mod answers;
mod crowds;
mod ends;
mod idle_runtime;
mod outside;
mod silence;
mod storm;
mod wakers;

use std::sync::mpsc;
use std::time::Duration;

use leasehold_core::{Clock, LockKey};
use leasehold_testkit::{FaultyMemory, faulty_memory};
use tokio::runtime::{Builder, Runtime};

/// For what takes milliseconds, on a machine that is busy; no lease here is as short.
const PATIENCE: Duration = Duration::from_secs(20);

/// Long enough for callers to get where they wait. Nothing is wrong if it was not.
const MOMENT: Duration = Duration::from_millis(50);

pub(crate) fn key() -> LockKey {
    LockKey::new("k").unwrap()
}

fn store() -> FaultyMemory {
    faulty_memory(&Clock::system())
}

/// A runtime that is driven only while something is blocked on.
pub(crate) fn resting() -> Runtime {
    Builder::new_current_thread().enable_all().build().unwrap()
}

fn live() -> Runtime {
    Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
}

/// What this comes to, unless it takes too long.
async fn soon<T>(what: &str, work: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, work).await.unwrap_or_else(|_| panic!("{what}"))
}

/// The same for what may block its thread for ever.
fn ends<T: Send + 'static>(what: &str, work: impl FnOnce() -> T + Send + 'static) -> T {
    let (tells, told) = mpsc::channel();
    std::thread::spawn(move || tells.send(work()));
    told.recv_timeout(PATIENCE).unwrap_or_else(|error| panic!("{what}: {error}"))
}
