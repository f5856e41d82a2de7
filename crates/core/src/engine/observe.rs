//! The names of every span, event and metric, the same on every backend.

use std::time::Duration;

use metrics::{counter, gauge, histogram};

use crate::{Held, LockKey, LossReason, Mode, Result};

/// How an acquisition ended.
#[derive(Clone, Copy, Debug)]
pub(super) enum Acquired {
    Granted,
    Busy,
    Failed,
}

pub(super) fn acquired(backend: &'static str, key: &LockKey, mode: Mode, outcome: Acquired, waited: Duration) {
    let outcome = match outcome {
        Acquired::Granted => "granted",
        Acquired::Busy => "busy",
        Acquired::Failed => "failed",
    };
    histogram!("leasehold_acquire_wait_seconds", "backend" => backend, "outcome" => outcome).record(waited);
    tracing::debug!(backend, %key, %mode, outcome, waited_ms = millis(waited), "acquire ended");
}

pub(super) fn attempt_failed(backend: &'static str, key: &LockKey, error: &crate::Error) {
    counter!("leasehold_attempt_failures_total", "backend" => backend).increment(1);
    tracing::warn!(backend, %key, %error, "an attempt failed; it is tried again until the wait is over");
}

/// Somebody waits behind others of this process, until this is dropped.
#[derive(Debug)]
pub(super) struct Queued(&'static str);

pub(super) fn queued(backend: &'static str, key: &LockKey) -> Queued {
    counter!("leasehold_contended_total", "backend" => backend).increment(1);
    gauge!("leasehold_queue_length", "backend" => backend).increment(1.0);
    tracing::debug!(backend, %key, "waiting behind others of this process");
    Queued(backend)
}

impl Drop for Queued {
    fn drop(&mut self) {
        gauge!("leasehold_queue_length", "backend" => self.0).decrement(1.0);
    }
}

pub(super) fn renewed(backend: &'static str, key: &LockKey, answer: &Result<Held>) {
    let outcome = match answer {
        Ok(Held::Yes) => "ok",
        Ok(Held::No | Held::Forced) => "gone",
        Err(_) => "failed",
    };
    counter!("leasehold_renewals_total", "backend" => backend, "outcome" => outcome).increment(1);
    if let Err(error) = answer {
        tracing::warn!(backend, %key, %error, "renewal failed; it is retried until the deadline");
    }
}

pub(super) fn lost(backend: &'static str, key: &LockKey, reason: LossReason, held: Duration) {
    counter!("leasehold_losses_total", "backend" => backend, "reason" => reason.as_str()).increment(1);
    histogram!("leasehold_hold_seconds", "backend" => backend).record(held);
    tracing::warn!(backend, %key, reason = reason.as_str(), held_ms = millis(held), "lock lost");
}

pub(super) fn handed_over(backend: &'static str) {
    counter!("leasehold_hand_overs_total", "backend" => backend).increment(1);
}

pub(super) fn let_go(backend: &'static str, held: Duration) {
    histogram!("leasehold_hold_seconds", "backend" => backend).record(held);
}

pub(super) fn release_failed(backend: &'static str, key: &LockKey, error: &crate::Error) {
    counter!("leasehold_release_failures_total", "backend" => backend).increment(1);
    tracing::warn!(backend, %key, %error, "release failed; it is retried in the background");
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
