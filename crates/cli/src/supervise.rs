use std::pin::pin;
use std::time::Duration;

use leasehold::{GuardMode, LossReason};
use rustix::process::Signal;
use tokio::time::{Instant, sleep, sleep_until};

use crate::args::{OnLost, RunArgs};
use crate::child::{Change, Child, Ended};
use crate::ending::{Due, Ending};
use crate::held::Held;
use crate::report::Report;
use crate::signals::Signals;
use crate::stopwatch::Stopwatch;
use crate::terminal::Terminal;

/// The longest time between two checks of the lease. Timers of the runtime stop while the machine sleeps, so one long
/// timer would fire too late.
const SLICE: Duration = Duration::from_secs(1);

/// Supervises a command that runs under a lock, or several: forwards signals, and ends the command in time when the lock is lost.
pub(crate) struct Supervisor<'a, M: GuardMode> {
    held: &'a Held<M>,
    child: &'a mut Child,
    args: &'a RunArgs,
    report: Report,
    /// Since what is held was acquired.
    acquired: &'a Stopwatch,
    ending: Ending,
    /// The reason for which the command was told to end, or continues without the lock.
    loss: Option<LossReason>,
    kill_at: Option<Instant>,
}

impl<'a, M: GuardMode> Supervisor<'a, M> {
    pub(crate) fn new(
        held: &'a Held<M>,
        child: &'a mut Child,
        args: &'a RunArgs,
        report: Report,
        acquired: &'a Stopwatch,
    ) -> Self {
        let grace = if args.on_lost == OnLost::Term { args.kill_after } else { Duration::ZERO };
        let ending = Ending::new(grace, args.max_hold);
        Self { held, child, args, report, acquired, ending, loss: None, kill_at: None }
    }

    /// Waits until the command ends. Returns how it ended and, if the lock was lost meanwhile, the reason.
    pub(crate) async fn until_it_ends(mut self, signals: &mut Signals) -> (Ended, Option<LossReason>) {
        let (held, ignores) = (self.held, self.args.on_lost == OnLost::Ignore);
        let mut terminal = Terminal::default();
        let mut losing = pin!(held.lost());
        let mut wanted = pin!(held.wanted());
        let mut on_wanted = self.args.on_wanted;
        let may_go_on = || held.loss().is_none() || ignores;
        let ended = loop {
            // After a pause of this process its timers are behind the clock, so the lease is checked before anything else.
            let next_look = self.look();
            tokio::select! {
                biased;
                _ = &mut losing, if self.loss.is_none() => {}
                () = sleep_until(self.kill_at.unwrap_or_else(Instant::now)), if self.kill_at.is_some() => {
                    self.child.signal(Signal::KILL);
                    self.kill_at = None;
                }
                change = self.child.change() => match change {
                    Change::Ended(ended) => break ended,
                    Change::Stopped(signal) => terminal.command_stopped(self.child, signal, &may_go_on),
                },
                () = &mut wanted, if on_wanted.is_some() => {
                    if let Some(signal) = on_wanted.take() {
                        self.child.signal(signal);
                    }
                }
                signal = signals.next() => match signal {
                    Signal::TSTP => terminal.told_to_stop(self.child, &may_go_on),
                    signal => self.child.signal(signal),
                },
                () = sleep(next_look), if self.loss.is_none() => {}
            }
        };
        self.report.exited(ended);
        self.look();
        if self.loss.is_some() && !ignores {
            self.end_the_rest(signals).await;
        }
        (ended, self.loss)
    }

    /// Ends the command if it is time for that. Returns the time until the next check.
    fn look(&mut self) -> Duration {
        if self.loss.is_some() {
            return SLICE;
        }
        match self.due() {
            Due::In(wait) => wait.min(SLICE),
            Due::Now { reason, grace } => {
                self.end(reason, grace);
                SLICE
            }
        }
    }

    fn due(&mut self) -> Due {
        let reason = self.held.loss().map(|(_, reason)| reason);
        match reason {
            // The store answered that the lock is lost, before its deadline.
            Some(reason @ (LossReason::Stolen | LossReason::ForceReleased)) => {
                Due::Now { reason, grace: self.args.kill_after }
            }
            // After the deadline another holder may have the lock.
            Some(reason) => Due::Now { reason, grace: Duration::ZERO },
            None if self.args.on_lost == OnLost::Ignore => Due::In(SLICE),
            None => self.ending.look(self.held.remaining(), self.acquired.read()),
        }
    }

    /// Does what `--on-lost` asks for. `grace` is the time that the command gets to end by itself.
    fn end(&mut self, reason: LossReason, grace: Duration) {
        let action =
            if grace.is_zero() && self.args.on_lost == OnLost::Term { OnLost::Kill } else { self.args.on_lost };
        self.loss = Some(reason);
        let key = self.held.loss().map_or(self.held.first.key(), |(key, _)| key);
        self.report.lost(key, reason, action, self.held.remaining());
        match action {
            OnLost::Term => {
                self.child.signal(Signal::TERM);
                // A command that is stopped would not receive SIGTERM.
                self.child.signal(Signal::CONT);
                self.kill_at = Instant::now().checked_add(grace);
            }
            OnLost::Kill => self.child.signal(Signal::KILL),
            OnLost::Ignore => {}
        }
    }

    /// Waits for what is left of the command's process group, until it has to be killed. A signal that ends this program
    /// kills it at once.
    async fn end_the_rest(&self, signals: &mut Signals) {
        let until = self.kill_at.unwrap_or_else(Instant::now);
        tokio::select! {
            biased;
            _ = signals.next_that_ends() => self.child.signal(Signal::KILL),
            () = self.child.end_the_rest(until) => {}
        }
    }
}
