use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::task::{JoinHandle, JoinSet};

use super::{Core, waiting};
use crate::clock::Moment;
use crate::engine::tenure::Tenure;
use crate::{Backend, Clock, Error, ErrorKind, Held, LossReason, Renewal, Result};

/// Renews what is due, in batches, and tells what is lost: one task per engine, not one per lock.
///
/// The task does no I/O itself, so a store that hangs cannot make it miss a deadline. If it never runs (the runtime
/// is gone), leases run out, and the clock comparison in `is_held` says so.
#[derive(Debug)]
pub(super) struct Keeper {
    agenda: Arc<Agenda>,
    task: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Debug, Default)]
struct Agenda {
    due: Mutex<BTreeMap<(Moment, usize), Arc<Tenure>>>,
    changed: Notify,
}

impl Keeper {
    pub(super) fn new() -> Self {
        Self { agenda: Arc::default(), task: Mutex::new(None) }
    }

    /// Takes a tenure into its care. Must be called inside a runtime.
    pub(super) fn watch<B: Backend>(&self, tenure: &Arc<Tenure>, core: &Arc<Core<B>>) {
        self.agenda.note(tenure);
        let mut task = lock(&self.task);
        // A task that ended went down with its runtime; this runtime is alive.
        if task.as_ref().is_none_or(JoinHandle::is_finished) {
            *task = Some(tokio::spawn(run(Arc::downgrade(core), Arc::clone(&self.agenda), core.clock.clone())));
        }
    }

    /// Not one command for that tenure any more.
    pub(super) fn forget(&self, tenure: &Arc<Tenure>) {
        self.agenda.strike(tenure);
    }

    /// Takes note of what a renewal changed. False if the tenure is held no more.
    pub(super) fn note_again(&self, tenure: &Arc<Tenure>) -> bool {
        self.agenda.note(tenure)
    }

    /// Everything that is held.
    pub(super) fn all(&self) -> Vec<Arc<Tenure>> {
        lock(&self.agenda.due).values().cloned().collect()
    }

    pub(super) fn stop(&self) {
        if let Some(task) = lock(&self.task).take() {
            task.abort();
        }
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Agenda {
    /// Notes down when a tenure needs attention next, in the place of any earlier note. False if it is held no more.
    fn note(&self, tenure: &Arc<Tenure>) -> bool {
        let mut due = lock(&self.due);
        due.remove(&Self::place(tenure));
        if !tenure.is_held() {
            return false;
        }
        tenure.noted_at.store(tenure.next_event().as_nanos(), Ordering::Relaxed);
        let place = Self::place(tenure);
        due.insert(place, Arc::clone(tenure));
        let first = due.first_key_value().is_some_and(|(first, _)| *first == place);
        drop(due);
        if first {
            self.changed.notify_one();
        }
        true
    }

    fn strike(&self, tenure: &Arc<Tenure>) {
        lock(&self.due).remove(&Self::place(tenure));
    }

    /// Takes out what needs attention now. Of these, those to be renewed; the rest was lost by the clock.
    fn take_due(&self, now: Moment) -> Vec<Arc<Tenure>> {
        let mut due = lock(&self.due);
        let mut to_renew = Vec::new();
        while let Some(entry) = due.first_entry() {
            if entry.key().0 > now {
                break;
            }
            let tenure = entry.remove();
            if !tenure.is_held_at(now) {
                continue;
            }
            // What was noted may have been for a level that is gone.
            let is_due = tenure.next_renewal() <= now;
            // While the renewal is under way only the deadline matters.
            let next = if is_due { tenure.limit() } else { tenure.next_event() };
            tenure.noted_at.store(next.as_nanos(), Ordering::Relaxed);
            due.insert(Self::place(&tenure), Arc::clone(&tenure));
            if is_due {
                to_renew.push(tenure);
            }
        }
        to_renew
    }

    fn next(&self) -> Option<Moment> {
        lock(&self.due).first_key_value().map(|((at, _), _)| *at)
    }

    fn place(tenure: &Arc<Tenure>) -> (Moment, usize) {
        (Moment::from_nanos(tenure.noted_at.load(Ordering::Relaxed)), Arc::as_ptr(tenure).addr())
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn run<B: Backend>(core: Weak<Core<B>>, agenda: Arc<Agenda>, clock: Clock) {
    // Renewals under way; they end with this task.
    let mut renewals = JoinSet::new();
    loop {
        let next = agenda.next();
        tokio::select! {
            () = agenda.changed.notified() => {}
            () = clock.reach(next.unwrap_or(Moment::NEVER)), if next.is_some() => {}
            Some(_) = renewals.join_next() => continue,
        }
        let due = agenda.take_due(clock.now());
        if due.is_empty() {
            continue;
        }
        let Some(core) = core.upgrade() else { return };
        for batch in due.chunks(core.backend.renewal_batch().max(1)) {
            renewals.spawn(renew_batch(Arc::clone(&core), batch.to_vec()));
        }
    }
}

async fn renew_batch<B: Backend>(core: Arc<Core<B>>, batch: Vec<Arc<Tenure>>) {
    let renewals: Vec<_> =
        batch.iter().map(|tenure| Renewal { grant: tenure.grant.clone(), ttl: tenure.ttl }).collect();
    let patience = batch.iter().map(|tenure| tenure.ttl / 3).min().unwrap_or_default();
    for tenure in &batch {
        tenure.asked();
    }
    let sent_at = core.clock.now();
    let mut answers = match tokio::time::timeout(patience, core.backend.renew(&renewals)).await {
        Ok(answers) => answers.into_iter(),
        Err(_) => Vec::new().into_iter(),
    };
    for tenure in &batch {
        let answer = answers.next().unwrap_or_else(|| Err(Error::new(ErrorKind::Indeterminate, "renew")));
        core.settle_renewal(tenure, sent_at, &answer);
    }
}

impl<B: Backend> Core<B> {
    /// Draws the consequence of an answer to a renewal that left at `sent_at`: an error is "unknown" and is retried
    /// until the deadline; only the store's "not yours" is a loss.
    pub(super) fn settle_renewal(&self, tenure: &Arc<Tenure>, sent_at: Moment, answer: &Result<Held>) {
        self.observer.renewed(&tenure.grant.key, answer);
        match answer {
            Ok(Held::Yes) => tenure.renewed(sent_at),
            Ok(Held::No) => tenure.lose(LossReason::Stolen),
            Ok(Held::Forced) => tenure.lose(LossReason::ForceReleased),
            Err(_) => {
                let pause = (tenure.ttl / 12).clamp(Duration::from_millis(2), Duration::from_secs(1));
                tenure.retry(self.clock.now().plus(waiting::jittered(pause)));
            }
        }
        if !self.keeper.note_again(tenure) {
            self.queue.freed(&tenure.grant.key);
        }
    }
}
