use std::fs::File;
use std::future;
use std::io::{self, Read};
use std::task::Poll;

use rustix::process::{Signal, getpid, kill_process};
use tokio::signal::unix::{self, SignalKind};

use crate::exit::Failure;

/// The signals that the program catches. It forwards them to the command; before the command starts, they end the program.
#[derive(Debug)]
pub(crate) struct Signals {
    caught: Vec<(Signal, unix::Signal)>,
    ignored: u64,
    told_to_end: bool,
}

/// Those with which a person or a supervisor ends a program. The others of [`ENDING`] mean what the command makes of them.
const TO_END: [Signal; 4] = [Signal::INT, Signal::TERM, Signal::HUP, Signal::QUIT];

const ENDING: [Signal; 6] = [Signal::INT, Signal::TERM, Signal::HUP, Signal::QUIT, Signal::USR1, Signal::USR2];

impl Signals {
    /// Catches the signals that end a program. Must be called inside a runtime.
    ///
    /// A signal that was ignored when the program started stays ignored, and is ignored by the command too: `nohup` and the
    /// shell's `&` rely on that.
    pub(crate) fn catch() -> Result<Self, Failure> {
        let mut signals = Self { caught: Vec::new(), ignored: ignored_by_inheritance(), told_to_end: false };
        for signal in ENDING {
            signals.also(signal).map_err(Failure::System)?;
        }
        Ok(signals)
    }

    /// Also catches the terminal's signals (window size and Ctrl-Z), which a running command needs.
    pub(crate) fn catch_those_of_a_terminal(&mut self) -> Result<(), Failure> {
        [Signal::WINCH, Signal::TSTP].into_iter().try_for_each(|signal| self.also(signal)).map_err(Failure::System)
    }

    /// Waits for the next signal. Cancel safe.
    pub(crate) async fn next(&mut self) -> Signal {
        let signal = future::poll_fn(|context| {
            let came = |(signal, caught): &mut (Signal, unix::Signal)| {
                matches!(caught.poll_recv(context), Poll::Ready(Some(()))).then_some(*signal)
            };
            self.caught.iter_mut().find_map(came).map_or(Poll::Pending, Poll::Ready)
        })
        .await;
        self.told_to_end |= TO_END.contains(&signal);
        signal
    }

    /// Whether one of the signals came by which a program is told to end.
    pub(crate) fn told_to_end(&self) -> bool {
        self.told_to_end
    }

    /// Waits for the next signal that ends a program, and handles the terminal's signals meanwhile. Cancel safe.
    pub(crate) async fn next_that_ends(&mut self) -> Signal {
        loop {
            match self.next().await {
                Signal::WINCH => {}
                Signal::TSTP => stop_ourselves(),
                signal => return signal,
            }
        }
    }

    /// Runs `work` to its end. Drops it and fails if a signal comes first.
    pub(crate) async fn or<T>(&mut self, work: impl Future<Output = T>) -> Result<T, Failure> {
        tokio::select! {
            biased;
            signal = self.next() => Err(Failure::Interrupted(signal)),
            done = work => Ok(done),
        }
    }

    fn also(&mut self, signal: Signal) -> io::Result<()> {
        if self.ignored & (1 << (signal.as_raw() - 1)) == 0 {
            self.caught.push((signal, unix::signal(SignalKind::from_raw(signal.as_raw()))?));
        }
        Ok(())
    }
}

/// Stops this process alone, until somebody continues it.
pub(crate) fn stop_ourselves() {
    let _ = kill_process(getpid(), Signal::STOP);
}

/// The set of ignored signals, from `/proc/self/status`. Empty on systems without that file.
fn ignored_by_inheritance() -> u64 {
    // With room for all of it: the kernel tells no length, so that `fs::read_to_string` asks eight times.
    let mut status = String::with_capacity(8192);
    let _ = File::open("/proc/self/status").and_then(|mut file| file.read_to_string(&mut status));
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}
