//! What a task writes into the history.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use leasehold_chaos::history::{Event, Log, Mode, UNKNOWN, now};
use leasehold_core::ErrorKind;

/// The history of one process, and the numbers that are unique in it.
#[derive(Clone, Debug)]
pub(crate) struct Recorder {
    log: Arc<Log>,
    next: Arc<AtomicU64>,
}

/// From the call of one acquire, to the release.
#[derive(Clone, Debug)]
pub(crate) struct Op {
    recorder: Recorder,
    task: u32,
    number: u64,
}

impl Recorder {
    pub(crate) fn new(log: Log) -> Self {
        Self { log: Arc::new(log), next: Arc::new(AtomicU64::new(1)) }
    }

    /// A number that this process has not used.
    pub(crate) fn unique(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    pub(crate) fn begin(&self, task: u32) -> Op {
        Op { recorder: self.clone(), task, number: self.unique() }
    }
}

impl Op {
    /// Writes down what happened just now.
    pub(crate) fn log(&self, event: Event) {
        self.log_at(now(), event);
    }

    /// Writes down what happened at that moment. Ends the process if it cannot: what nobody wrote down is not checked.
    pub(crate) fn log_at(&self, at: u64, event: Event) {
        if let Err(error) = self.recorder.log.write(at, self.task, self.number, event) {
            panic!("the history cannot be written: {error}");
        }
    }

    /// A call, with its limit, its session, and whether it attaches a lock.
    pub(crate) fn called(&self, key: &str, mode: Mode, (wait_ms, session, attach): (Option<u64>, Option<u32>, bool)) {
        self.log(Event::Called { key: key.to_owned(), mode, wait_ms, session, attach });
    }
}

/// The name in the history of an acquire that was given up.
pub(crate) const CANCELLED: &str = "cancelled";

/// The name of an error in the history.
pub(crate) fn name_of(kind: ErrorKind) -> String {
    if kind == ErrorKind::Indeterminate { UNKNOWN.to_owned() } else { kind.to_string() }
}
