//! The names of every span, event and metric, the same on every backend.

use std::time::Duration;

use metrics::{Gauge, Histogram, Key, Label, Level, Metadata, counter, with_recorder};

use crate::{Error, LeaseStatus, LockKey, LossReason, Mode, Result};

/// How an acquisition ended.
#[derive(Clone, Copy, Debug)]
pub(super) enum Acquired {
    Granted,
    Busy,
    Failed,
}

/// Records spans, events and metrics of one backend. The keys of metrics that change with every acquisition are made once;
/// the recorder is looked up each time, because a program may install its own late.
#[derive(Debug)]
pub(super) struct Observer {
    backend: &'static str,
    granted: Key,
    busy: Key,
    failed: Key,
    contended: Key,
    queue_length: Key,
    renewed: Key,
    hold: Key,
    handoffs: Key,
}

impl Observer {
    pub(super) fn new(backend: &'static str) -> Self {
        let label = Label::new("backend", backend);
        let key = |name| Key::from_parts(name, vec![label.clone()]);
        let ended = |name, outcome| Key::from_parts(name, vec![label.clone(), Label::new("outcome", outcome)]);
        Self {
            backend,
            granted: ended(ACQUIRE_WAIT, "granted"),
            busy: ended(ACQUIRE_WAIT, "busy"),
            failed: ended(ACQUIRE_WAIT, "failed"),
            contended: key("leasehold_contended_total"),
            queue_length: key("leasehold_queue_length"),
            renewed: ended(RENEWALS, "ok"),
            hold: key("leasehold_hold_seconds"),
            handoffs: key("leasehold_local_handoffs_total"),
        }
    }

    pub(super) fn acquired(&self, key: &LockKey, mode: Mode, outcome: Acquired, waited: Duration) {
        let (metric, outcome) = match outcome {
            Acquired::Granted => (&self.granted, "granted"),
            Acquired::Busy => (&self.busy, "busy"),
            Acquired::Failed => (&self.failed, "failed"),
        };
        histogram(metric).record(waited);
        let backend = self.backend;
        tracing::debug!(backend, key = key.as_str(), %mode, outcome, waited_ms = millis(waited), "acquire ended");
    }

    pub(super) fn attempt_failed(&self, key: &LockKey, error: &Error) {
        let backend = self.backend;
        counter!("leasehold_attempt_failures_total", "backend" => backend).increment(1);
        tracing::warn!(backend, key = key.as_str(), %error, "an attempt failed; it is tried again until the wait is over");
    }

    /// Counts a caller that waits behind others of this process, until the result is dropped.
    pub(super) fn queued(&self, key: &LockKey) -> Queued<'_> {
        count(&self.contended);
        gauge(&self.queue_length).increment(1.0);
        tracing::debug!(backend = self.backend, key = key.as_str(), "waiting behind others of this process");
        Queued(self)
    }

    pub(super) fn renewed(&self, key: &LockKey, answer: &Result<LeaseStatus>) {
        let backend = self.backend;
        match answer {
            Ok(LeaseStatus::Held) => count(&self.renewed),
            Ok(LeaseStatus::NotHeld | LeaseStatus::ForceReleased) => {
                counter!(RENEWALS, "backend" => backend, "outcome" => "gone").increment(1);
            }
            Err(error) => {
                counter!(RENEWALS, "backend" => backend, "outcome" => "failed").increment(1);
                tracing::warn!(backend, key = key.as_str(), %error, "renewal failed; it is retried until the deadline");
            }
        }
    }

    pub(super) fn lost(&self, key: &LockKey, reason: LossReason, held: Duration) {
        let backend = self.backend;
        counter!("leasehold_losses_total", "backend" => backend, "reason" => reason.as_str()).increment(1);
        histogram(&self.hold).record(held);
        tracing::warn!(backend, key = key.as_str(), reason = reason.as_str(), held_ms = millis(held), "lock lost");
    }

    pub(super) fn handed_off(&self) {
        count(&self.handoffs);
    }

    pub(super) fn guard_ended(&self, held: Duration) {
        histogram(&self.hold).record(held);
    }

    pub(super) fn release_failed(&self, key: &LockKey, error: &Error) {
        let backend = self.backend;
        counter!("leasehold_release_failures_total", "backend" => backend).increment(1);
        tracing::warn!(backend, key = key.as_str(), %error, "release failed; it is retried in the background");
    }
}

#[derive(Debug)]
pub(super) struct Queued<'o>(&'o Observer);

impl Drop for Queued<'_> {
    fn drop(&mut self) {
        gauge(&self.0.queue_length).decrement(1.0);
    }
}

const ACQUIRE_WAIT: &str = "leasehold_acquire_wait_seconds";
const RENEWALS: &str = "leasehold_renewals_total";

static METADATA: Metadata<'static> = Metadata::new(module_path!(), Level::INFO, Some(module_path!()));

fn count(key: &Key) {
    with_recorder(|recorder| recorder.register_counter(key, &METADATA)).increment(1);
}

fn gauge(key: &Key) -> Gauge {
    with_recorder(|recorder| recorder.register_gauge(key, &METADATA))
}

fn histogram(key: &Key) -> Histogram {
    with_recorder(|recorder| recorder.register_histogram(key, &METADATA))
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
