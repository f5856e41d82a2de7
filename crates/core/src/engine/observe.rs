//! The names of every span, event and metric, the same on every backend.

use std::time::Duration;

use metrics::{
    Gauge, Histogram, Key, Label, Level, Metadata, Unit, counter, describe_counter, describe_gauge, describe_histogram,
    with_recorder,
};

use crate::{Clock, Error, FencingToken, Holder, Holders, LeaseStatus, LockKey, LossReason, Mode, Result};

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
    guards: Key,
    handoffs: Key,
}

impl Observer {
    pub(super) fn new(backend: &'static str) -> Self {
        describe_metrics();
        let label = Label::new("backend", backend);
        let key = |name| Key::from_parts(name, vec![label.clone()]);
        let ended = |name, outcome| Key::from_parts(name, vec![label.clone(), Label::new("outcome", outcome)]);
        Self {
            backend,
            granted: ended(ACQUIRE_WAIT, "granted"),
            busy: ended(ACQUIRE_WAIT, "busy"),
            failed: ended(ACQUIRE_WAIT, "failed"),
            contended: key(CONTENDED),
            queue_length: key(QUEUE_LENGTH),
            renewed: ended(RENEWALS, "ok"),
            hold: key(HOLD),
            guards: key(GUARDS),
            handoffs: key(HANDOFFS),
        }
    }

    pub(super) fn acquired(
        &self,
        key: &LockKey,
        mode: Mode,
        outcome: Acquired,
        token: Option<FencingToken>,
        waited: Duration,
    ) {
        let (metric, outcome) = match outcome {
            Acquired::Granted => (&self.granted, "granted"),
            Acquired::Busy => (&self.busy, "busy"),
            Acquired::Failed => (&self.failed, "failed"),
        };
        histogram(metric).record(waited);
        let backend = self.backend;
        let (token, waited_ms) = (token.map(FencingToken::get), millis(waited));
        tracing::debug!(backend, key = key.as_str(), %mode, outcome, token, waited_ms, "acquire ended");
    }

    pub(super) fn attempt_failed(&self, key: &LockKey, error: &Error) {
        let backend = self.backend;
        counter!(ATTEMPT_FAILURES, "backend" => backend).increment(1);
        tracing::warn!(backend, key = key.as_str(), %error, "an attempt failed; it is tried again until the wait is over");
    }

    /// Counts a caller that waits behind others of this process, until the result is dropped.
    pub(super) fn queued(&self, key: &LockKey) -> Queued<'_> {
        count(&self.contended);
        gauge(&self.queue_length).increment(1.0);
        tracing::debug!(backend = self.backend, key = key.as_str(), "waiting behind others of this process");
        Queued(self)
    }

    /// A wait takes longer than its caller expects: `asked` is what the store says of the key.
    pub(super) fn waits_long(&self, key: &LockKey, waited: Duration, asked: &Result<Holders>, clock: &Clock) {
        let (backend, key, waited_ms) = (self.backend, key.as_str(), millis(waited));
        let (holders, error) = match asked {
            Ok(asked) => (asked.holders.as_slice(), None),
            Err(error) => (&[][..], Some(tracing::field::display(error))),
        };
        // Of several readers, the one who holds it longest.
        let holder = holders.iter().min_by_key(|holder| holder.token);
        tracing::warn!(
            backend,
            key,
            waited_ms,
            holders = holders.len(),
            holder = holder.and_then(|holder| holder.label.as_deref()),
            reason = holder.and_then(|holder| holder.reason.as_deref()),
            mode = holder.map(|holder| tracing::field::display(holder.mode)),
            token = holder.and_then(|holder| holder.token).map(FencingToken::get),
            held_ms = holder.and_then(|holder| holder.held_for(clock)).map(millis),
            remaining_ms = holder.and_then(|holder| holder.remaining).map(millis),
            error,
            "waiting long"
        );
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
        counter!(LOSSES, "backend" => backend, "reason" => reason.as_str()).increment(1);
        tracing::warn!(backend, key = key.as_str(), reason = reason.as_str(), held_ms = millis(held), "lock lost");
    }

    /// This process released somebody's lease by force. The store does not keep who did, and when.
    pub(super) fn forced(&self, key: &LockKey, holder: &Holder, by: Option<&str>) {
        let (backend, mode, token) = (self.backend, holder.mode, holder.token.map(FencingToken::get));
        let holder = holder.label.as_deref();
        tracing::warn!(backend, key = key.as_str(), %mode, token, holder, by, "released by force");
    }

    pub(super) fn handed_off(&self) {
        count(&self.handoffs);
    }

    pub(super) fn guard_began(&self) {
        gauge(&self.guards).increment(1.0);
    }

    /// A guard was released, dropped, detached or downgraded.
    pub(super) fn guard_ended(&self, key: &LockKey, token: Option<FencingToken>, held: Duration) {
        gauge(&self.guards).decrement(1.0);
        histogram(&self.hold).record(held);
        let (backend, token, held_ms) = (self.backend, token.map(FencingToken::get), millis(held));
        tracing::debug!(backend, key = key.as_str(), token, held_ms, "hold ended");
    }

    pub(super) fn release_failed(&self, key: &LockKey, error: &Error) {
        let backend = self.backend;
        counter!(RELEASE_FAILURES, "backend" => backend).increment(1);
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
const HOLD: &str = "leasehold_hold_seconds";
const GUARDS: &str = "leasehold_guards";
const CONTENDED: &str = "leasehold_contended_total";
const QUEUE_LENGTH: &str = "leasehold_queue_length";
const RENEWALS: &str = "leasehold_renewals_total";
const LOSSES: &str = "leasehold_losses_total";
const HANDOFFS: &str = "leasehold_local_handoffs_total";
const ATTEMPT_FAILURES: &str = "leasehold_attempt_failures_total";
const RELEASE_FAILURES: &str = "leasehold_release_failures_total";

/// Describes every metric of Leasehold to the installed `metrics` recorder: its unit, and what it counts.
///
/// An engine does so when it is made; call this where the recorder is installed after the first locker was connected.
pub fn describe_metrics() {
    describe_histogram!(
        ACQUIRE_WAIT,
        Unit::Seconds,
        "How long an acquisition took, by outcome: granted, busy or failed"
    );
    describe_histogram!(HOLD, Unit::Seconds, "How long a guard held its lock, until its release or its loss");
    describe_gauge!(GUARDS, "Guards of this process that have not ended; a lost one counts until it is dropped");
    describe_counter!(CONTENDED, "Acquisitions that waited behind a holder or a waiter of the same process");
    describe_gauge!(QUEUE_LENGTH, "Acquisitions that wait behind a holder or a waiter of the same process");
    describe_counter!(RENEWALS, "Renewals, by outcome: ok, gone, or failed, also without an answer of the store");
    describe_counter!(LOSSES, "Leases that were lost, by reason");
    describe_counter!(HANDOFFS, "Leases that passed to another guard of the process without a request to the store");
    describe_counter!(
        ATTEMPT_FAILURES,
        "Attempts to acquire, attach or downgrade that failed, whether or not they are repeated"
    );
    describe_counter!(RELEASE_FAILURES, "Releases that failed, whether or not they are repeated");
}

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
