use std::collections::BTreeMap;
use std::slice;
use std::time::Duration;

use futures::future::join_all;
use leasehold::{
    Address, Capability, Error, ErrorKind, Exclusive, Guard, GuardMode, LockKey, LockOptions, Locker, LockerExt, Locks,
    LossReason, Mode, ReleaseOutcome, Result, RwLockerExt, Semaphore, Wait,
};

use crate::args::{OnLost, RunArgs, StoreArgs};
use crate::child::Child;
use crate::choice::{Purpose, can_detach, choose, close};
use crate::duration::{millis, spoken};
use crate::exit::{Codes, Failure};
use crate::held::{Held, lease_left};
use crate::report::Report;
use crate::signals::Signals;
use crate::stopwatch::Stopwatch;
use crate::supervise::Supervisor;
use crate::waiting::Waiting;
use crate::wording::{self, default_label};

/// How long the program waits for the answer to its release.
const RELEASE_BOUND: Duration = Duration::from_secs(5);

/// `leasehold run`: connects, acquires, runs the command and releases. Returns the exit code.
pub(crate) async fn run(args: &RunArgs, store: &StoreArgs, codes: Codes, report: Report) -> Result<u8, Failure> {
    let mut signals = Signals::catch()?;
    let (choice, joins_a_session) = (choose(store)?, store.session.is_some());
    choice.tell_of_default(report);
    let purpose = if args.close { Purpose::Lock } else { Purpose::Run };
    let started = Stopwatch::start();
    let store = signals.or(choice.connect_within(purpose, args.patience(), report)).await??;
    let (connecting, place, address) = (started.read(), choice.shown(), &choice.address);
    let job = Job { args, codes, report, store: &store, address, place, joins_a_session, connecting };
    let done = match job.lock_around_it().await {
        Some(failure) => Err(failure),
        None if args.restart => job.keep_running(&mut signals).await,
        None => job.acquire_and_run(&mut signals).await.map(|ran| ran.exit_code),
    };
    // An acquisition that a signal interrupted is finished by `close`, which releases the lock if it was granted.
    close(&store).await;
    done
}

/// One command under one lock.
struct Job<'a> {
    args: &'a RunArgs,
    codes: Codes,
    report: Report,
    store: &'a Locks,
    address: &'a Address,
    /// The store, as it is shown to people and programs.
    place: String,
    /// Whether it takes the lock as a session, which other programs can be, too.
    joins_a_session: bool,
    /// How much of the wait was spent on connecting.
    connecting: Duration,
}

/// How a command ended that was started.
struct Ran {
    exit_code: u8,
    held: Duration,
}

/// How a command ended, for what becomes of its lock.
struct Finished {
    succeeded: bool,
    held_for: Duration,
}

impl Job<'_> {
    /// The failure of a program that would wait for itself for ever: it is part of a command that runs under this lock.
    ///
    /// The environment alone does not say that: what a command left behind when it ended has it, too.
    async fn lock_around_it(&self) -> Option<Failure> {
        let (args, outer) = (self.args, outer_locks());
        let (key, outer) =
            args.keys().into_iter().find_map(|key| outer.get(key.as_str()).map(|token| (key, *token)))?;
        if args.permits.is_some() || self.joins_a_session || args.patience() != Wait::Forever {
            return None;
        }
        let holders = self.waiting_for(slice::from_ref(&key)).look().await.ok()?.holders;
        let holder = holders.iter().find(|holder| holder.token.map(u64::from) == Some(outer))?;
        let excludes_us = !args.shared || holder.mode == Mode::Exclusive;
        excludes_us.then(|| {
            let (key, who) = (wording::shown(key.as_str()), wording::holder(holder));
            Failure::Usage(format!("{key} is held by {who}, for the command that this program is part of"))
        })
    }

    /// Runs the command again and again, each time under a lock of its own, until a signal comes that ends programs.
    async fn keep_running(&self, signals: &mut Signals) -> Result<u8, Failure> {
        let mut last = None;
        loop {
            let held = match self.acquire_and_run(signals).await {
                Ok(ran) if signals.told_to_end() => return Ok(ran.exit_code),
                Ok(ran) => ran.held,
                Err(failure @ Failure::LostBeforeStart { .. }) => {
                    self.report.warn(&failure);
                    Duration::ZERO
                }
                Err(failure) => return Err(failure),
            };
            let pause = pause_after(held, last);
            last = Some(pause);
            self.report.restarting(pause);
            signals.or(tokio::time::sleep(pause)).await?;
        }
    }

    async fn acquire_and_run(&self, signals: &mut Signals) -> Result<Ran, Failure> {
        let Self { args, store, .. } = self;
        if args.on_wanted.is_some() && !store.capabilities().has(Capability::Queue) {
            let refused = Error::new(ErrorKind::Unsupported, "acquire").with_backend(self.backend()).key(&args.key);
            return Err(refused.detail("--on-wanted needs a store with a queue").into());
        }
        let mut options = args.options();
        if let Wait::UpTo(limit) = options.patience() {
            options = options.wait(Wait::UpTo(limit.saturating_sub(self.connecting)));
        }
        if args.shared {
            let readers = store.readers().map_err(|refused| refused.key(&args.key))?;
            let waiting = self.waiting_for(slice::from_ref(&args.key));
            let release = async |held, finished| self.release(held, finished).await;
            let acquiring = async { Ok(readers.acquire_read(&args.key, &options).await?.map(|reader| vec![reader])) };
            return self.run_under(acquiring, waiting, signals, release).await;
        }
        if args.once_per.is_some() {
            can_detach(store, "acquire")?;
        }
        let semaphore = args.permits.map(|permits| Semaphore::new(store.locker(), &args.key, permits)).transpose()?;
        let keys = args.keys();
        let waiting = self.waiting_for(semaphore.as_ref().map_or(keys.as_slice(), Semaphore::slots));
        let release = async |held, finished| self.release_or_leave(held, finished).await;
        let acquiring = async {
            match &semaphore {
                Some(semaphore) => Ok(semaphore.acquire_with(&options).await?.map(|permit| vec![permit])),
                None => store.lock_all(keys.clone(), &options).await,
            }
        };
        self.run_under(acquiring, waiting, signals, release).await
    }

    /// The name of the backend.
    fn backend(&self) -> &'static str {
        self.store.capabilities().backend()
    }

    /// What is reported while this program waits for one of these keys.
    fn waiting_for<'w>(&'w self, keys: &'w [LockKey]) -> Waiting<'w> {
        Waiting::new(&self.args.key, keys, (self.backend(), &self.place), self.store, self.report)
    }

    async fn run_under<M: GuardMode>(
        &self,
        acquiring: impl Future<Output = Result<Option<Vec<Guard<M>>>>>,
        waiting: Waiting<'_>,
        signals: &mut Signals,
        release: impl AsyncFnOnce(Held<M>, Finished) -> Option<LossReason>,
    ) -> Result<Ran, Failure> {
        let args = self.args;
        let held = self.acquire(acquiring, waiting, signals).await?;
        let acquired = Stopwatch::start();
        if let Some((key, reason)) = held.loss() {
            return Err(Failure::LostBeforeStart { key: key.clone(), reason });
        }
        let outcome = match self.start(&held, signals) {
            Ok(mut child) => {
                let supervisor = Supervisor::new(&held, &mut child, args, self.report, &acquired);
                Ok(supervisor.until_it_ends(signals).await)
            }
            Err(failure) => Err(failure),
        };
        let succeeded = matches!(&outcome, Ok((ended, None)) if ended.exit_code() == 0);
        let finished = || Finished { succeeded, held_for: acquired.read() };
        let kept = outcome.is_ok() && self.keep(&held, &finished(), signals).await;
        let finished = finished();
        let held_for = finished.held_for;
        let at_release = release(held, finished).await;
        let (ended, mut loss) = outcome?;
        if let Some(reason) = at_release.filter(|_| !kept && loss.is_none()) {
            self.report.warn(&format!("the lock was lost before the command ended: {reason}"));
            loss = Some(reason);
        }
        let covered = loss.is_none() || args.on_lost == OnLost::Ignore;
        Ok(Ran { exit_code: if covered { ended.exit_code() } else { self.codes.lost }, held: held_for })
    }

    /// Waits for the lock, and reports meanwhile how long it takes and who holds it.
    async fn acquire<M: GuardMode>(
        &self,
        acquiring: impl Future<Output = Result<Option<Vec<Guard<M>>>>>,
        mut waiting: Waiting<'_>,
        signals: &mut Signals,
    ) -> Result<Held<M>, Failure> {
        let Self { args, report, .. } = self;
        let granted = tokio::select! {
            biased;
            signal = signals.next() => return Err(Failure::Interrupted(signal)),
            granted = acquiring => granted?,
            never = waiting.report() => match never {},
        };
        waiting.wipe();
        let waited = waiting.waited();
        let Some(held) = granted.and_then(|all| Held::of(all, &args.key)) else {
            let holders = waiting.look().await.ok();
            let key = holders.as_ref().map_or(&args.key, |holders| &holders.key).clone();
            return Err(Failure::Busy { key, waited, holders });
        };
        for guard in held.all() {
            report.acquired(guard, &self.place, waited, waiting.holder());
        }
        Ok(held)
    }

    fn start<M: GuardMode>(&self, held: &Held<M>, signals: &mut Signals) -> Result<Child, Failure> {
        signals.catch_those_of_a_terminal()?;
        let variables = [
            Some(held.first.key().as_str().to_owned()),
            held.first.fencing_token().map(|token| token.to_string()),
            held.tokens(),
            Some(self.address.public().to_owned()),
            lease_left(held.remaining()).map(|left| millis(left).to_string()),
        ];
        let command = self.args.command();
        let child = Child::start(&command, variables).map_err(|cause| {
            let program = command.first().map(|program| program.to_string_lossy().into_owned());
            Failure::Command { program: program.unwrap_or_default(), cause }
        })?;
        self.report.started(child.pid().as_raw_nonzero().get());
        Ok(child)
    }

    /// Keeps the lock until the time of `--min-hold` is over, or a signal comes. Returns false if it was over already.
    async fn keep<M: GuardMode>(&self, held: &Held<M>, finished: &Finished, signals: &mut Signals) -> bool {
        // A store shortens no lease: where that lasts for longer than `--once-per`, this program stays for the rest.
        let lasts = finished.held_for + lease_left(held.remaining()).unwrap_or_default();
        let period = self.args.once_per.filter(|period| finished.succeeded && *period < lasts);
        let (option, least) =
            if period.is_some() { ("--once-per", period) } else { ("--min-hold", self.args.min_hold) };
        let left = least.and_then(|least| least.checked_sub(finished.held_for)).filter(|_| held.loss().is_none());
        let Some(left) = left else { return false };
        tokio::select! {
            biased;
            reason = held.lost() => self.report.warn(&format!("lost before {option} was over: {reason}")),
            signal = signals.next_that_ends() => {
                self.report.verbose(|| format!("signal {} cuts {option} short", signal.as_raw()));
            }
            () = tokio::time::sleep(left) => {}
        }
        true
    }

    /// Leaves the lock in the store for the rest of `--once-per` if the command succeeded, and else releases it.
    async fn release_or_leave(&self, held: Held<Exclusive>, finished: Finished) -> Option<LossReason> {
        let period = self.args.once_per.filter(|_| finished.succeeded);
        let rest = period.and_then(|period| period.checked_sub(finished.held_for));
        let Some(rest) = rest.filter(|rest| *rest >= LockOptions::MIN_TTL) else {
            return self.release(held, finished).await;
        };
        let guard = held.first;
        let (key, reason) = (guard.key().clone(), guard.loss());
        let Ok(detached) = guard.detach() else { return reason.or(Some(LossReason::Expired)) };
        let options = LockOptions::new().ttl(rest).label(default_label());
        let left = match tokio::time::timeout(RELEASE_BOUND, self.store.attach(&detached, &options)).await {
            Ok(Ok(Some(kept))) => kept.detach().is_ok(),
            _ => false,
        };
        if !left {
            let key = wording::shown(key.as_str());
            self.report.warn(&format!("{key} could not be kept for {}: the command may run again", spoken(rest)));
        }
        None
    }

    /// Releases what is held. Returns the reason if the store answered that it had been lost before.
    async fn release<M: GuardMode>(&self, held: Held<M>, finished: Finished) -> Option<LossReason> {
        let released = held.into_all().map(|guard| self.release_one(guard, finished.held_for));
        join_all(released).await.into_iter().find_map(|reason| reason)
    }

    async fn release_one<M: GuardMode>(&self, guard: Guard<M>, held_for: Duration) -> Option<LossReason> {
        let key = guard.key().clone();
        let left = lease_left(guard.remaining());
        let silent = || {
            let silence = Error::new(ErrorKind::Indeterminate, "release").with_backend(self.backend()).key(&key);
            Err(silence.detail("the store gave no answer"))
        };
        let outcome = tokio::time::timeout(RELEASE_BOUND, guard.release()).await;
        let outcome = match outcome.unwrap_or_else(|_| silent()) {
            // It was held when the command ended; its lease ended while the store did not answer.
            Ok(ReleaseOutcome::AlreadyLost(LossReason::Expired | LossReason::Unreachable))
                if left.is_some_and(|left| !left.is_zero()) =>
            {
                silent()
            }
            outcome => outcome,
        };
        self.report.released(&key, held_for, &outcome, left);
        match outcome {
            Ok(ReleaseOutcome::AlreadyLost(reason)) => Some(reason),
            _ => None,
        }
    }
}

/// How long `--restart` waits after a command that ran for so long, where it waited so long before that: one that fails at once, again
/// and again, must not keep store and machine busy.
fn pause_after(ran: Duration, last: Option<Duration>) -> Duration {
    const SHORTEST: Duration = Duration::from_secs(1);
    const LONGEST: Duration = Duration::from_secs(60);
    last.filter(|_| ran < LONGEST).map_or(SHORTEST, |last| (last * 2).min(LONGEST))
}

/// The keys and tokens of the locks under which this program was started, if it was.
fn outer_locks() -> BTreeMap<String, u64> {
    let variable = |name| std::env::var(name).ok();
    let several = variable("LEASEHOLD_TOKENS").and_then(|tokens| serde_json::from_str(&tokens).ok());
    let one = || Some((variable("LEASEHOLD_KEY")?, variable("LEASEHOLD_TOKEN")?.parse().ok()?));
    several.unwrap_or_else(|| one().into_iter().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_while_the_command_ends_early_and_begin_anew_after_it_ran_for_a_minute() {
        let pauses = [59, 59, 59, 59, 59, 59, 59, 59, 60, 0].into_iter().scan(None, |last, ran| {
            *last = Some(pause_after(Duration::from_secs(ran), *last));
            last.map(|pause| pause.as_secs())
        });
        assert_eq!(pauses.collect::<Vec<_>>(), [1, 2, 4, 8, 16, 32, 60, 60, 1, 2]);
    }
}
